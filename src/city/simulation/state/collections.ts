/** Collections that find entities by id or by place, and union-find sets. */
import RBush, { type BBox } from "rbush";
import { type Box, type GroundPoint, gridIndexOf } from "../../geometry.js";
import { RefusedError } from "../../refusal.js";

/** A fixed-size pool of entities addressed by id. Id 0 is reserved; a new entity takes the lowest free id. */
export class Pool<T extends { readonly id: number }> {
  readonly #slots: (T | undefined)[] = [undefined];
  #lowestFree = 1;
  #live = 0;
  /** Cached result of `all`; null after a change. */
  #all: readonly T[] | null = null;

  readonly #kind: string;
  readonly #capacity: number;

  /**
   * @param kind name of the entities, for error messages
   * @param capacity highest id
   */
  constructor(kind: string, capacity: number) {
    this.#kind = kind;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#live;
  }

  /** One more than the highest id ever used. A loop over all ids ends before it. */
  get end(): number {
    return this.#slots.length;
  }

  get(id: number): T | undefined {
    return this.#slots[id];
  }

  /** Returns the entity with this id. @throws RangeError if there is none */
  at(id: number): T {
    const entity = this.#slots[id];
    if (!entity) throw new RangeError(`no entity has id ${id}`);
    return entity;
  }

  /** @throws RefusedError for an unknown id */
  require(id: number): T {
    const entity = this.get(id);
    if (!entity) throw new RefusedError(`There is no ${this.#kind} with id ${id}`);
    return entity;
  }

  /** Id for the next entity, or 0 when the pool is full. */
  nextId(): number {
    while (this.#slots[this.#lowestFree]) this.#lowestFree++;
    return this.#lowestFree <= this.#capacity ? this.#lowestFree : 0;
  }

  hasRoomFor(count: number): boolean {
    return this.#live + count <= this.#capacity;
  }

  /** @throws RefusedError if the pool has no room for `count` more entities */
  requireRoomFor(count: number): void {
    if (this.hasRoomFor(count)) return;
    throw new RefusedError(`The city already has ${this.size} ${this.#kind}s, its limit`);
  }

  put(entity: T): void {
    if (this.#slots[entity.id]) throw new RangeError(`id ${entity.id} is taken`);
    while (this.#slots.length <= entity.id) this.#slots.push(undefined);
    this.#slots[entity.id] = entity;
    this.#live++;
    this.#all = null;
  }

  remove(id: number): void {
    if (!this.#slots[id]) throw new RangeError(`no entity has id ${id}`);
    this.#slots[id] = undefined;
    this.#live--;
    this.#all = null;
    this.#lowestFree = Math.min(this.#lowestFree, id);
  }

  /** All entities in ascending id order. */
  *values(): Generator<T> {
    for (const entity of this.#slots) if (entity) yield entity;
  }

  /** All entities in ascending id order. Later changes do not affect the list. */
  all(): readonly T[] {
    this.#all ??= this.#slots.filter((entity) => entity !== undefined);
    return this.#all;
  }
}

/** A list kept in ascending id order. */
export class SortedById<T extends { readonly id: number }> {
  readonly items: T[] = [];

  add(item: T): void {
    this.items.splice(this.#position(item.id), 0, item);
  }

  remove(item: T): void {
    const at = this.#position(item.id);
    if (this.items[at] !== item) throw new RangeError(`the list has no item with id ${item.id}`);
    this.items.splice(at, 1);
  }

  #position(id: number): number {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.items[middle] as T).id < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Tolerance for rounding differences between boxes and distances, so that entities exactly at the edge are found. */
const ROUNDING_METERS = 0.001;

interface Entry extends BBox {
  readonly id: number;
}

/** Finds ids of entities that may be near a place. The caller measures the exact distance. */
export class SpatialIndex {
  readonly #tree = new RBush<Entry>();
  /** Entries inserted since the last query. Adding many entries to the tree at once is much faster. */
  #waiting: Entry[] = [];

  insert(id: number, box: Box): void {
    this.#waiting.push(entryOf(id, box, 0));
  }

  /** @param box the same box as in `insert` */
  remove(id: number, box: Box): void {
    this.#settle();
    this.#tree.remove(entryOf(id, box, 0), (a, b) => a.id === b.id);
  }

  /** Ids of the boxes that touch the given box, ascending. */
  near(box: Box): number[] {
    this.#settle();
    const found = this.#tree.search(entryOf(0, box, ROUNDING_METERS));
    return found.map(({ id }) => id).sort((a, b) => a - b);
  }

  #settle(): void {
    if (this.#waiting.length === 0) return;
    this.#tree.load(this.#waiting);
    this.#waiting = [];
  }
}

function entryOf(id: number, { minX, minZ, maxX, maxZ }: Box, margin: number): Entry {
  return { id, minX: minX - margin, minY: minZ - margin, maxX: maxX + margin, maxY: maxZ + margin };
}

/** A pool whose entities are also found by their place, which never changes. */
export class PlacedPool<T extends { readonly id: number }> extends Pool<T> {
  readonly #index = new SpatialIndex();
  readonly #boundsOf: (entity: T) => Box;
  /** Rises whenever an entity appears or disappears. */
  revision = 0;

  constructor(kind: string, capacity: number, boundsOf: (entity: T) => Box) {
    super(kind, capacity);
    this.#boundsOf = boundsOf;
  }

  override put(entity: T): void {
    super.put(entity);
    this.#index.insert(entity.id, this.#boundsOf(entity));
    this.revision++;
  }

  override remove(id: number): void {
    this.#index.remove(id, this.#boundsOf(this.at(id)));
    super.remove(id);
    this.revision++;
  }

  /** Entities whose bounds touch a box, in ascending id order. */
  near(box: Box): T[] {
    return this.#index.near(box).map((id) => this.at(id));
  }
}

/** Finds neighbours of many places quickly: flat arrays, sorted by grid square, row by row. */
export class SquareGrid {
  readonly #side: number;
  readonly #west: number;
  readonly #north: number;
  readonly #columns: number;
  readonly #rows: number;
  /** Index of the first entity of each square, plus one entry for the end. */
  readonly #starts: Int32Array;
  readonly #xs: Float64Array;
  readonly #zs: Float64Array;
  /** Position of each entity in the arrays, by id. */
  readonly #indices: Int32Array;

  /** @param entities in ascending id order */
  constructor(entities: readonly { readonly id: number; readonly position: GroundPoint }[], side: number) {
    const columns = entities.map(({ position }) => gridIndexOf(position.x, side));
    const rows = entities.map(({ position }) => gridIndexOf(position.z, side));
    const [west, east, north, south] = [...rangeOf(columns), ...rangeOf(rows)];
    this.#side = side;
    this.#west = west;
    this.#north = north;
    this.#columns = east - west + 1;
    this.#rows = south - north + 1;
    const squareAt = (i: number) =>
      ((rows[i] as number) - north) * this.#columns + (columns[i] as number) - west;
    this.#starts = new Int32Array(this.#columns * this.#rows + 1);
    for (let i = 0; i < entities.length; i++) increment(this.#starts, squareAt(i) + 1);
    let sum = 0;
    this.#starts.forEach((entitiesIn, square) => {
      sum += entitiesIn;
      this.#starts[square] = sum;
    });
    this.#xs = new Float64Array(entities.length);
    this.#zs = new Float64Array(entities.length);
    this.#indices = new Int32Array((entities.at(-1)?.id ?? 0) + 1);
    const next = this.#starts.slice();
    entities.forEach(({ id, position }, i) => {
      const at = increment(next, squareAt(i));
      this.#xs[at] = position.x;
      this.#zs[at] = position.z;
      this.#indices[id] = at;
    });
  }

  indexOf(id: number): number {
    return this.#indices[id] as number;
  }

  /** Visits the entities in the square of a place and in the eight adjacent squares. */
  visitAround({ x, z }: GroundPoint, visit: (index: number, squaredMeters: number) => void): void {
    const column = gridIndexOf(x, this.#side) - this.#west;
    const row = gridIndexOf(z, this.#side) - this.#north;
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

/** Adds 1 to a count. @returns the count before */
function increment(counts: Int32Array, at: number): number {
  const before = counts[at] as number;
  counts[at] = before + 1;
  return before;
}

/** Numbers that are joined into sets (union-find). The key of a set is its lowest member. */
export class DisjointSets {
  /** By number: the number's parent plus one; 0 if the number was never joined. */
  readonly #parents: Int32Array;

  /** @param end one more than the highest number */
  constructor(end: number) {
    this.#parents = new Int32Array(end);
  }

  join(a: number, b: number): void {
    if (this.#parents[a] === 0) this.#parents[a] = a + 1;
    if (this.#parents[b] === 0) this.#parents[b] = b + 1;
    const keyA = this.key(a);
    const keyB = this.key(b);
    this.#parents[Math.max(keyA, keyB)] = Math.min(keyA, keyB) + 1;
  }

  /** Key of the set that contains a number; -1 if the number was never joined. */
  key(member: number): number {
    let key = member;
    while (this.#parents[key] !== 0 && this.#parents[key] !== key + 1) key = this.#parentOf(key);
    for (let at = member; at !== key; ) {
      const next = this.#parentOf(at);
      this.#parents[at] = key + 1;
      at = next;
    }
    return this.#parents[key] === 0 ? -1 : key;
  }

  #parentOf(member: number): number {
    return (this.#parents[member] as number) - 1;
  }
}
