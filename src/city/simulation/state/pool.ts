/** A fixed-size pool of entities addressed by id. Id 0 is reserved; a new entity takes the lowest free id. */
export class Pool<T extends { readonly id: number }> {
  private readonly slots: (T | undefined)[] = [undefined];
  private lowestFree = 1;
  private live = 0;

  /** @param capacity the highest id that may be given out */
  constructor(readonly capacity: number) {}

  get size(): number {
    return this.live;
  }

  /** One more than the highest id ever used: the range a sweep over all ids has to cover. */
  get end(): number {
    return this.slots.length;
  }

  get(id: number): T | undefined {
    return this.slots[id];
  }

  /** The entity with an id known to exist. */
  at(id: number): T {
    const entity = this.slots[id];
    if (!entity) throw new RangeError(`no entity has id ${id}`);
    return entity;
  }

  /** The id the next entity has to take, or 0 when the pool is full. */
  nextId(): number {
    while (this.slots[this.lowestFree]) this.lowestFree++;
    return this.lowestFree <= this.capacity ? this.lowestFree : 0;
  }

  hasRoomFor(count: number): boolean {
    return this.live + count <= this.capacity;
  }

  put(entity: T): void {
    if (this.slots[entity.id]) throw new RangeError(`id ${entity.id} is taken`);
    while (this.slots.length <= entity.id) this.slots.push(undefined);
    this.slots[entity.id] = entity;
    this.live++;
  }

  remove(id: number): void {
    if (!this.slots[id]) throw new RangeError(`no entity has id ${id}`);
    this.slots[id] = undefined;
    this.live--;
    this.lowestFree = Math.min(this.lowestFree, id);
  }

  /** All entities in ascending id order, as a new array. */
  all(): T[] {
    const entities: T[] = [];
    for (const entity of this.slots) if (entity) entities.push(entity);
    return entities;
  }
}

/** A list kept in ascending id order. */
export class SortedById<T extends { readonly id: number }> {
  readonly items: T[] = [];

  add(item: T): void {
    this.items.splice(this.position(item.id), 0, item);
  }

  remove(item: T): void {
    const at = this.position(item.id);
    if (this.items[at] !== item) throw new RangeError(`id ${item.id} is not in the list`);
    this.items.splice(at, 1);
  }

  private position(id: number): number {
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
