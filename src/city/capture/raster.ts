/** Raster of a square of the map, north up: fills convex shapes. */
import { distance, type GroundPoint } from "../geometry.js";

export interface ImageFrame {
  readonly center: GroundPoint;
  /** Edge length of the square map area in the image. */
  readonly sizeMeters: number;
  readonly pixels: number;
}

/** A convex shape on the ground, its corners in order. */
export type Shape = readonly GroundPoint[];

export class Raster {
  /** Palette index per pixel, row by row from the top. */
  readonly pixels: Uint8Array;

  constructor(readonly frame: ImageFrame) {
    this.pixels = new Uint8Array(frame.pixels ** 2);
  }

  get metersPerPixel(): number {
    return this.frame.sizeMeters / this.frame.pixels;
  }

  /** Ground point at the centre of a pixel. */
  placeOf(column: number, row: number): GroundPoint {
    const { center, sizeMeters } = this.frame;
    return {
      x: center.x - sizeMeters / 2 + (column + 0.5) * this.metersPerPixel,
      z: center.z + sizeMeters / 2 - (row + 0.5) * this.metersPerPixel,
    };
  }

  /** Fills every pixel whose centre lies within the shape. */
  fill(shape: Shape, color: number): void {
    const { center, sizeMeters, pixels } = this.frame;
    const corners = shape.map(({ x, z }) => ({
      column: (x - center.x + sizeMeters / 2) / this.metersPerPixel - 0.5,
      row: (center.z + sizeMeters / 2 - z) / this.metersPerPixel - 0.5,
    }));
    const rows = corners.map(({ row }) => row);
    const first = Math.max(Math.ceil(Math.min(...rows)), 0);
    const last = Math.min(Math.floor(Math.max(...rows)), pixels - 1);
    for (let row = first; row <= last; row++) {
      let [left, right] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      corners.forEach((from, i) => {
        const to = corners[(i + 1) % corners.length] as typeof from;
        if (row < Math.min(from.row, to.row) || row > Math.max(from.row, to.row)) return;
        const share = from.row === to.row ? 0 : (row - from.row) / (to.row - from.row);
        const crossings =
          from.row === to.row ? [from.column, to.column] : [from.column + share * (to.column - from.column)];
        left = Math.min(left, ...crossings);
        right = Math.max(right, ...crossings);
      });
      const start = Math.max(Math.ceil(left), 0);
      const end = Math.min(Math.floor(right), pixels - 1);
      if (start <= end) this.pixels.fill(color, row * pixels + start, row * pixels + end + 1);
    }
  }
}

/** Rectangle that covers a straight line of the given width. */
export function thickLine(start: GroundPoint, end: GroundPoint, widthMeters: number): Shape {
  const length = distance(start, end) || 1;
  const across = {
    x: (-(end.z - start.z) / length) * (widthMeters / 2),
    z: ((end.x - start.x) / length) * (widthMeters / 2),
  };
  return [
    { x: start.x + across.x, z: start.z + across.z },
    { x: end.x + across.x, z: end.z + across.z },
    { x: end.x - across.x, z: end.z - across.z },
    { x: start.x - across.x, z: start.z - across.z },
  ];
}
