/**
 * A spatial index over the map in 64 m cells, as the game keeps for its nodes. It answers "what may be near here"
 * with ids; the caller measures. Whatever lies beyond the map is kept in the border cells.
 */
import type { GroundPoint } from "../../game.js";
import { MAP_HALF_METERS } from "./terrain.js";

const CELL_METERS = 64;
const CELLS = (2 * MAP_HALF_METERS) / CELL_METERS;
/** Ids are 16-bit. */
const LARGEST_ID = 65_535;

export interface Bounds {
  readonly minX: number;
  readonly minZ: number;
  readonly maxX: number;
  readonly maxZ: number;
}

/** The box of two points, grown on every side. */
export function boxOf(start: GroundPoint, end: GroundPoint, grow: number): Bounds {
  return {
    minX: Math.min(start.x, end.x) - grow,
    minZ: Math.min(start.z, end.z) - grow,
    maxX: Math.max(start.x, end.x) + grow,
    maxZ: Math.max(start.z, end.z) + grow,
  };
}

export function boundsAround(point: GroundPoint, radius: number): Bounds {
  return { minX: point.x - radius, minZ: point.z - radius, maxX: point.x + radius, maxZ: point.z + radius };
}

export class SpatialGrid {
  private readonly cells: (number[] | undefined)[] = new Array(CELLS * CELLS);
  /** Per id the last query that found it, so that each is found once. */
  private readonly seen = new Uint32Array(LARGEST_ID + 1);
  private query = 0;

  insert(id: number, bounds: Bounds): void {
    this.forCells(bounds, (index) => {
      const cell = this.cells[index];
      if (cell) cell.push(id);
      else this.cells[index] = [id];
    });
  }

  remove(id: number, bounds: Bounds): void {
    this.forCells(bounds, (index) => this.removeFromCell(index, id));
  }

  /** Enters a line only into the cells along it, so that a long diagonal does not fill its whole box. */
  insertLine(id: number, start: GroundPoint, end: GroundPoint, grow: number): void {
    for (const index of this.cellsAlong(start, end, grow)) {
      const cell = this.cells[index];
      if (cell) cell.push(id);
      else this.cells[index] = [id];
    }
  }

  removeLine(id: number, start: GroundPoint, end: GroundPoint, grow: number): void {
    for (const index of this.cellsAlong(start, end, grow)) this.removeFromCell(index, id);
  }

  /** Ids whose bounds may touch the given ones, ascending, each once. */
  near(bounds: Bounds): number[] {
    const found: number[] = [];
    this.query++;
    const minColumn = cellCoordinate(bounds.minX);
    const maxColumn = cellCoordinate(bounds.maxX);
    const maxRow = cellCoordinate(bounds.maxZ);
    for (let row = cellCoordinate(bounds.minZ); row <= maxRow; row++) {
      for (let column = minColumn; column <= maxColumn; column++) {
        const cell = this.cells[row * CELLS + column];
        if (!cell) continue;
        for (const id of cell) {
          if (this.seen[id] === this.query) continue;
          this.seen[id] = this.query;
          found.push(id);
        }
      }
    }
    return found.sort(ascending);
  }

  private removeFromCell(index: number, id: number): void {
    const cell = this.cells[index];
    const at = cell?.indexOf(id) ?? -1;
    if (cell && at >= 0) cell.splice(at, 1);
  }

  private cellsAlong(start: GroundPoint, end: GroundPoint, grow: number): Set<number> {
    const found = new Set<number>();
    const pieces = Math.max(1, Math.ceil(Math.hypot(end.x - start.x, end.z - start.z) / CELL_METERS));
    const at = (i: number) => ({
      x: start.x + ((end.x - start.x) * i) / pieces,
      z: start.z + ((end.z - start.z) * i) / pieces,
    });
    for (let i = 0; i < pieces; i++)
      this.forCells(boxOf(at(i), at(i + 1), grow), (index) => found.add(index));
    return found;
  }

  private forCells(bounds: Bounds, visit: (index: number) => void): void {
    const minColumn = cellCoordinate(bounds.minX);
    const maxColumn = cellCoordinate(bounds.maxX);
    const maxRow = cellCoordinate(bounds.maxZ);
    for (let row = cellCoordinate(bounds.minZ); row <= maxRow; row++) {
      for (let column = minColumn; column <= maxColumn; column++) visit(row * CELLS + column);
    }
  }
}

function ascending(a: number, b: number): number {
  return a - b;
}

function cellCoordinate(meters: number): number {
  return Math.min(Math.max(Math.floor((meters + MAP_HALF_METERS) / CELL_METERS), 0), CELLS - 1);
}
