/** Draws the layers of the map. The canvas context is in metres, with y to the north. */
import { BLOCK_COLUMNS, CELL_METERS, distanceToLine, toFootprintCoordinates } from "../city/geometry.js";
import { type NetworkClass, networkClass } from "../city/network-class.js";
import type {
  BuildingRow,
  CityData,
  LayerData,
  Place,
  SegmentRow,
  Selection,
  TerrainGrid,
  ZoneBlockRow,
} from "./api.js";
import { type Colors, scaleColor, ZONE_COLORS } from "./colors.js";

/** Height above lowGround at which hills have their full colour. */
const HILL_RANGE_METERS = 60;
/** Depth at which water has its full colour. */
const DEEP_METERS = 15;

/** Covers the whole canvas with a colour. */
export function fillCanvas(context: CanvasRenderingContext2D, color: string, opacity: number): void {
  context.save();
  context.resetTransform();
  context.globalAlpha = opacity;
  context.fillStyle = color;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.restore();
}

/** Pixels of the land's image for each sample, in x and z. */
const FINENESS = 4;
/** Height over which land and water blend, above and below the surface. */
const SHORE_METERS = 4;
/** Change of light on a slope of 45 degrees that faces the light in the north-west, or faces away. */
const SHADE = 0.9;

type Rgb = readonly [number, number, number];

/** Renders shaded land and water into an image, which `drawLand` scales to the map. */
export function renderLand(grid: TerrainGrid, colors: Colors): HTMLCanvasElement {
  const { samplesPerRow: samples, heights } = grid;
  const size = (samples - 1) * FINENESS;
  const canvas = document.createElement("canvas");
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const image = context.createImageData(size, size);
  const low = lowGround(heights);
  const water = waterLevel(grid);
  const lights = lightOf(grid);
  const ground = rgbOf(colors.ground);
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const [i, j] = [Math.floor(column / FINENESS), Math.floor(row / FINENESS)];
      const [u, v] = [column / FINENESS - i, row / FINENESS - j];
      const at = j * samples + i;
      const between = (values: readonly number[]) => {
        const near = (values[at] as number) * (1 - u) + (values[at + 1] as number) * u;
        const far = (values[at + samples] as number) * (1 - u) + (values[at + samples + 1] as number) * u;
        return near * (1 - v) + far * v;
      };
      const height = between(heights);
      const color = landColor(height, low, water, ground, colors);
      const light = height < water ? 1 : between(lights);
      image.data.set([color[0] * light, color[1] * light, color[2] * light, 255], 4 * (row * size + column));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Light on each sample, from the north-west; 1 on flat ground. */
function lightOf({ samplesPerRow: samples, heights, spacingMeters }: TerrainGrid): number[] {
  const at = (column: number, row: number) => {
    const [i, j] = [column, row].map((value) => Math.min(Math.max(value, 0), samples - 1)) as [
      number,
      number,
    ];
    return heights[j * samples + i] as number;
  };
  return heights.map((_, k) => {
    const [i, j] = [k % samples, Math.floor(k / samples)];
    const east = (at(i + 1, j) - at(i - 1, j)) / (2 * spacingMeters);
    const north = (at(i, j + 1) - at(i, j - 1)) / (2 * spacingMeters);
    return Math.min(Math.max(1 + SHADE * (east - north), 0.8), 1.08);
  });
}

/** The shore is as wide as some pixels of the image, so that it has no steps. */
function landColor(height: number, low: number, water: number, ground: Rgb, colors: Colors): Rgb {
  const above = height - water;
  if (above < -SHORE_METERS) return mix(colors.shallow, colors.water, -above / DEEP_METERS);
  if (above < 0) return mix(colors.sand, colors.shallow, -above / SHORE_METERS);
  return mix(colors.sand, mix(ground, colors.hill, (height - low) / HILL_RANGE_METERS), above / SHORE_METERS);
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const part = Math.min(Math.max(share, 0), 1);
  return [0, 1, 2].map(
    (i) => (from[i] as number) + ((to[i] as number) - (from[i] as number)) * part,
  ) as unknown as Rgb;
}

/** Reads a colour such as #d6e2bc. */
function rgbOf(color: string): Rgb {
  const value = Number.parseInt(color.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Height of the water's surface; below all land if there is no water. */
function waterLevel({ heights, waterDepths }: TerrainGrid): number {
  const wet = waterDepths.findIndex((depth) => depth > 0);
  return wet < 0 ? Number.NEGATIVE_INFINITY : (heights[wet] as number) + (waterDepths[wet] as number);
}

/** Draws the image of `renderLand`. Its first row is the southernmost row of the map. */
export function drawLand(context: CanvasRenderingContext2D, grid: TerrainGrid, land: HTMLCanvasElement) {
  const from = -grid.halfSizeMeters;
  context.imageSmoothingEnabled = true;
  context.drawImage(land, from, from, 2 * grid.halfSizeMeters, 2 * grid.halfSizeMeters);
}

/** Lower quartile of the heights. */
function lowGround(heights: readonly number[]): number {
  return [...heights].sort((a, b) => a - b)[Math.floor(heights.length / 4)] ?? 0;
}

/** The stored position of a block lies this many rows and columns away from the first cell of the block. */
const CELLS_TO_ORIGIN = 4;
/** Gap between drawn cells. */
const SEAM_METERS = 0.4;

/**
 * Draws zoned cells, and cells that can be zoned where the blocks say so. If blocks overlap, the older one owns the
 * ground: its cells cover those of the newer one.
 * @param blocks oldest first
 */
export function drawZones(
  context: CanvasRenderingContext2D,
  blocks: readonly ZoneBlockRow[],
  freeColor: string,
): void {
  const { width, height } = context.canvas;
  const cover = new OffscreenCanvas(width, height).getContext("2d") as OffscreenCanvasRenderingContext2D;
  for (const { position, angleRadians, rows, cells, usable } of blocks.toReversed()) {
    cover.setTransform(context.getTransform());
    cover.translate(position.x, position.z);
    cover.rotate(angleRadians);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < BLOCK_COLUMNS; column++) {
        const index = row * BLOCK_COLUMNS + column;
        const color = ZONE_COLORS[Number(cells[index])] ?? (usable?.[index] === "1" ? freeColor : null);
        if (!color) continue;
        cover.fillStyle = color;
        const depth = (column - CELLS_TO_ORIGIN) * CELL_METERS;
        const along = (CELLS_TO_ORIGIN - row - 1) * CELL_METERS;
        cover.fillRect(depth, along, CELL_METERS - SEAM_METERS, CELL_METERS - SEAM_METERS);
      }
    }
  }
  context.save();
  context.resetTransform();
  context.globalAlpha = 0.55;
  context.drawImage(cover.canvas, 0, 0);
  context.restore();
}

export type LineLayer = "roads" | "water" | "power";

/** Lines are at least `minPixels` wide, so that they stay visible when zoomed out. */
const LINE_STYLES = {
  path: { layer: "roads", color: "path", widthMeters: 4, minPixels: 1 },
  track: { layer: "roads", color: "track", widthMeters: 6, minPixels: 1.5 },
  smallRoad: { layer: "roads", color: "smallRoad", widthMeters: 12, minPixels: 1.5 },
  mediumRoad: { layer: "roads", color: "mediumRoad", widthMeters: 22, minPixels: 2 },
  largeRoad: { layer: "roads", color: "largeRoad", widthMeters: 28, minPixels: 2.5 },
  highway: { layer: "roads", color: "highway", widthMeters: 18, minPixels: 2.5 },
  waterPipe: { layer: "water", color: "waterPipe", widthMeters: 4, minPixels: 2 },
  heatPipe: { layer: "water", color: "waterPipe", widthMeters: 4, minPixels: 2 },
  powerLine: { layer: "power", color: "powerLine", widthMeters: 4, minPixels: 2 },
} as const satisfies Record<NetworkClass, object>;

/** Draws roads (with paths and tracks), pipes or power lines. Minor roads are drawn first. */
export function drawNetworks(
  context: CanvasRenderingContext2D,
  layer: LineLayer,
  segments: readonly SegmentRow[],
  colors: Colors,
  pixelsPerMeter: number,
): void {
  const byClass = Map.groupBy(segments, classOf);
  context.lineCap = "round";
  for (const [name, style] of Object.entries(LINE_STYLES)) {
    if (style.layer !== layer) continue;
    context.beginPath();
    for (const { start, end } of byClass.get(name as NetworkClass) ?? []) {
      context.moveTo(start.x, start.z);
      context.lineTo(end.x, end.z);
    }
    context.strokeStyle = colors[style.color];
    context.lineWidth = Math.max(style.widthMeters, style.minPixels / pixelsPerMeter);
    context.stroke();
  }
}

function classOf({ prefab, service }: SegmentRow): NetworkClass {
  return networkClass(prefab, service);
}

/** The layer that shows a network, by the name and the service of its prefab. */
export function layerOf(prefab: string, service: string): LineLayer {
  return LINE_STYLES[networkClass(prefab, service)].layer;
}

/** Whether a segment is a street. The map shows only the names of streets. */
export function isStreet(segment: SegmentRow): boolean {
  return ["smallRoad", "mediumRoad", "largeRoad"].includes(classOf(segment));
}

export function isHighway(segment: SegmentRow): boolean {
  return classOf(segment) === "highway";
}

const SQUARE_METERS = 64;
/** Number of buildings from which a square is drawn opaque. */
const OPAQUE_BUILDINGS = 16;
const MIN_OPACITY = 0.35;

/** The zoomed-out view: squares in the most frequent colour of their buildings, opaque with many. */
export function drawBuildingDensity(
  context: CanvasRenderingContext2D,
  buildings: readonly BuildingRow[],
  colorOf: (building: BuildingRow) => string,
): void {
  const squares = Map.groupBy(buildings, ({ position: { x, z } }) => {
    return `${Math.floor(x / SQUARE_METERS)}:${Math.floor(z / SQUARE_METERS)}`;
  });
  for (const [key, inside] of squares) {
    const [column, row] = key.split(":").map(Number) as [number, number];
    const [[color] = [""]] = [...Map.groupBy(inside, colorOf)].sort(([, a], [, b]) => b.length - a.length);
    context.fillStyle = color;
    context.globalAlpha = Math.min(MIN_OPACITY + inside.length / OPAQUE_BUILDINGS, 1);
    context.fillRect(column * SQUARE_METERS, row * SQUARE_METERS, SQUARE_METERS, SQUARE_METERS);
  }
  context.globalAlpha = 1;
}

const VEIL_OPACITY = 0.7;
const LAYER_OPACITY = 0.65;

/** Fades the map, and draws a data map over it as squares. For views in which single buildings are not visible. */
export function drawDataSquares(
  context: CanvasRenderingContext2D,
  { cells, cellMeters, isGood }: LayerData,
  ground: string,
): void {
  fillCanvas(context, ground, VEIL_OPACITY);
  context.globalAlpha = LAYER_OPACITY;
  for (const { x, z, value } of cells) {
    context.fillStyle = scaleColor(isGood ? value : 100 - value);
    context.fillRect(x - cellMeters / 2, z - cellMeters / 2, cellMeters, cellMeters);
  }
  context.globalAlpha = 1;
}

/** Fades the map, and draws a data map in the lines of its buildings; traffic on its roads. */
export function drawDataOn(
  context: CanvasRenderingContext2D,
  { layer, cells, cellMeters, isGood }: LayerData,
  buildings: readonly BuildingRow[],
  roads: readonly SegmentRow[],
  ground: string,
): void {
  fillCanvas(context, ground, VEIL_OPACITY);
  const keyOf = ({ x, z }: Place) => `${Math.floor(x / cellMeters)}:${Math.floor(z / cellMeters)}`;
  const values = new Map(cells.map((cell) => [keyOf(cell), cell.value]));
  const colorAt = (place: Place) => {
    const value = values.get(keyOf(place));
    return value === undefined ? null : scaleColor(isGood ? value : 100 - value);
  };
  if (layer !== "traffic") {
    for (const building of buildings) {
      const color = colorAt(building.position);
      if (color) fillFootprint(context, building, color);
    }
    return;
  }
  context.lineCap = "butt";
  for (const { start, end } of roads) {
    const color = colorAt({ x: (start.x + end.x) / 2, z: (start.z + end.z) / 2 });
    if (!color) continue;
    context.strokeStyle = color;
    context.lineWidth = LINE_STYLES.smallRoad.widthMeters;
    context.beginPath();
    context.moveTo(start.x, start.z);
    context.lineTo(end.x, end.z);
    context.stroke();
  }
}

function fillFootprint(context: CanvasRenderingContext2D, building: BuildingRow, color: string): void {
  const [width, length] = [building.width * CELL_METERS, building.length * CELL_METERS];
  context.save();
  context.translate(building.position.x, building.position.z);
  context.rotate((building.angleDegrees * Math.PI) / 180);
  context.fillStyle = color;
  context.fillRect(-width / 2, -length / 2, width - SEAM_METERS, length - SEAM_METERS);
  context.restore();
}

const MARK_PIXELS = 4;
const MARKED_GROUND_PIXELS = 10;

/** Outlines the selection. */
export function drawSelection(
  context: CanvasRenderingContext2D,
  selection: Selection,
  { buildings, segments }: Pick<CityData, "buildings" | "segments">,
  color: string,
  pixelsPerMeter: number,
): void {
  context.strokeStyle = color;
  context.lineWidth = MARK_PIXELS / pixelsPerMeter;
  context.beginPath();
  if (selection.kind === "ground") {
    context.arc(selection.x, selection.z, MARKED_GROUND_PIXELS / pixelsPerMeter, 0, 2 * Math.PI);
  } else if (selection.kind === "segment") {
    const segment = segments.find(({ id }) => id === selection.id);
    if (!segment) return;
    context.moveTo(segment.start.x, segment.start.z);
    context.lineTo(segment.end.x, segment.end.z);
  } else {
    const building = buildings.find(({ id }) => id === selection.id);
    if (!building) return;
    const [width, length] = [building.width * CELL_METERS, building.length * CELL_METERS];
    context.save();
    context.translate(building.position.x, building.position.z);
    context.rotate((building.angleDegrees * Math.PI) / 180);
    context.rect(-width / 2, -length / 2, width, length);
    context.restore();
  }
  context.stroke();
}

/** Building at a place. If there is none, the nearest segment within `reachMeters`. */
export function entityAt(
  place: Place,
  buildings: readonly BuildingRow[],
  segments: readonly SegmentRow[],
  reachMeters: number,
): { kind: "building" | "segment"; id: number } | null {
  const building = buildings.find((each) => isInside(place, each));
  if (building) return { kind: "building", id: building.id };
  const near = segments
    .map((segment) => ({ id: segment.id, away: distanceToLine(place, segment) }))
    .filter(({ away }) => away <= reachMeters)
    .sort((a, b) => a.away - b.away);
  return near[0] ? { kind: "segment", id: near[0].id } : null;
}

function isInside(place: Place, building: BuildingRow): boolean {
  const { x, z } = toFootprintCoordinates(building)(place);
  const { width, length } = building;
  return Math.abs(x) <= (width * CELL_METERS) / 2 && Math.abs(z) <= (length * CELL_METERS) / 2;
}
