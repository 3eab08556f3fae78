/** Finds what may be near a place. It answers with ids; the caller measures. */
import RBush, { type BBox } from "rbush";
import type { Box } from "../../geometry.js";

/** Boxes and distances are rounded differently: what lies just at the edge must be found. */
const ROUNDING_METERS = 0.001;

interface Entry extends BBox {
  readonly id: number;
}

export class SpatialIndex {
  readonly #tree = new RBush<Entry>();

  insert(id: number, box: Box): void {
    this.#tree.insert(entryOf(id, box, 0));
  }

  /** @param box the one that the id was inserted with */
  remove(id: number, box: Box): void {
    this.#tree.remove(entryOf(id, box, 0), (a, b) => a.id === b.id);
  }

  /** Ids whose boxes touch the given one, ascending. */
  near(box: Box): number[] {
    const found = this.#tree.search(entryOf(0, box, ROUNDING_METERS));
    return found.map(({ id }) => id).sort((a, b) => a - b);
  }
}

function entryOf(id: number, { minX, minZ, maxX, maxZ }: Box, margin: number): Entry {
  return { id, minX: minX - margin, minY: minZ - margin, maxX: maxX + margin, maxY: maxZ + margin };
}
