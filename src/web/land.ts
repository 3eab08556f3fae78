/** Hills and water as one small picture, stretched over the land. */
import type { TerrainGrid } from "./api.js";
import type { Colors } from "./colors.js";

/** From the usual ground up to where hills have their full colour. */
const HILL_RANGE_METERS = 60;
/** Water has its full colour from about this depth on, and at the shore a part of it. */
const DEEP_METERS = 15;
const SHORE_SHARE = 0.15;
const MAX_OPACITY = 230;

export function paintLand(grid: TerrainGrid, colors: Colors): HTMLCanvasElement {
  const size = grid.samplesPerRow;
  const canvas = document.createElement("canvas");
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const image = context.createImageData(size, size);
  const low = lowGround(grid.heights);
  grid.heights.forEach((height, i) => {
    const depth = grid.waterDepths[i] ?? 0;
    const share = depth > 0 ? SHORE_SHARE + depth / DEEP_METERS : (height - low) / HILL_RANGE_METERS;
    const opacity = Math.min(Math.max(share, 0), 1) * MAX_OPACITY;
    image.data.set([...(depth > 0 ? colors.water : colors.hill), opacity], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** In metres, with y to the north: the first row of samples is the southernmost. */
export function drawLand(
  context: CanvasRenderingContext2D,
  grid: TerrainGrid,
  land: HTMLCanvasElement,
): void {
  const from = -grid.halfSizeMeters - grid.spacingMeters / 2;
  const size = grid.samplesPerRow * grid.spacingMeters;
  context.imageSmoothingEnabled = true;
  context.drawImage(land, from, from, size, size);
}

/** A quarter of the land lies lower. */
function lowGround(heights: readonly number[]): number {
  return [...heights].sort((a, b) => a - b)[Math.floor(heights.length / 4)] ?? 0;
}
