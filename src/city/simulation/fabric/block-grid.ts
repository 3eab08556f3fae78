/** Finds zone blocks around many places at once. */
import type { GroundPoint } from "../../game.js";
import { squareOf } from "../../zone-tally.js";
import type { SimZoneBlock } from "../state/entities.js";

/** Blocks in squares, row by row in a few flat arrays: for each of thousands of growables those around are looked at. */
export class BlockGrid {
  readonly #side: number;
  readonly #west: number;
  readonly #north: number;
  readonly #columns: number;
  readonly #rows: number;
  /** By square: where its blocks begin; one more for the end. */
  readonly #starts: Int32Array;
  readonly #xs: Float64Array;
  readonly #zs: Float64Array;
  /** By block id: its place in the arrays. */
  readonly #indices: Int32Array;

  constructor(blocks: readonly SimZoneBlock[], side: number) {
    const columns = blocks.map(({ position }) => squareOf(position.x, side));
    const rows = blocks.map(({ position }) => squareOf(position.z, side));
    const [west, east, north, south] = [...rangeOf(columns), ...rangeOf(rows)];
    this.#side = side;
    this.#west = west;
    this.#north = north;
    this.#columns = east - west + 1;
    this.#rows = south - north + 1;
    const squareAt = (i: number) =>
      ((rows[i] as number) - north) * this.#columns + (columns[i] as number) - west;
    this.#starts = new Int32Array(this.#columns * this.#rows + 1);
    for (let i = 0; i < blocks.length; i++) increment(this.#starts, squareAt(i) + 1);
    let sum = 0;
    this.#starts.forEach((blocksIn, square) => {
      sum += blocksIn;
      this.#starts[square] = sum;
    });
    this.#xs = new Float64Array(blocks.length);
    this.#zs = new Float64Array(blocks.length);
    this.#indices = new Int32Array((blocks.at(-1)?.id ?? 0) + 1);
    const next = this.#starts.slice();
    blocks.forEach(({ id, position }, i) => {
      const at = increment(next, squareAt(i));
      this.#xs[at] = position.x;
      this.#zs[at] = position.z;
      this.#indices[id] = at;
    });
  }

  indexOf(blockId: number): number {
    return this.#indices[blockId] as number;
  }

  /** Visits the blocks within a square's side of a place, and some more, with their squared distances. */
  visitAround({ x, z }: GroundPoint, visit: (index: number, squaredMeters: number) => void): void {
    const column = squareOf(x, this.#side) - this.#west;
    const row = squareOf(z, this.#side) - this.#north;
    const from = Math.max(column - 1, 0);
    const to = Math.min(column + 1, this.#columns - 1);
    for (let r = Math.max(row - 1, 0); r <= Math.min(row + 1, this.#rows - 1) && from <= to; r++) {
      const end = this.#starts[r * this.#columns + to + 1] as number;
      for (let at = this.#starts[r * this.#columns + from] as number; at < end; at++) {
        visit(at, ((this.#xs[at] as number) - x) ** 2 + ((this.#zs[at] as number) - z) ** 2);
      }
    }
  }
}

function rangeOf(values: readonly number[]): [least: number, most: number] {
  let [least, most] = [values[0] ?? 0, values[0] ?? 0];
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return [least, most];
}

/** @returns the number before */
function increment(counts: Int32Array, at: number): number {
  const before = counts[at] as number;
  counts[at] = before + 1;
  return before;
}
