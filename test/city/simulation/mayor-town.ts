/** A town that scripted mayors build: a grid of blocks, extended north and west of the highway. */

import { placeBuilding } from "../../../src/city/commands/buildings.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { setZone } from "../../../src/city/commands/zones.js";
import { type GroundPoint, squareAround } from "../../../src/city/geometry.js";
import { findBuildingPrefab } from "../../../src/city/simulation/catalogue/building-prefabs.js";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { connectToHighway, road } from "./towns.js";

const BLOCK_METERS = 80;
/** The town's corner nearest to the highway. */
export const ORIGIN = { x: 400, z: 300 };
/** Plants, industry and polluting services are built near this place. */
export const WORKS = { x: -200, z: 260 };
/**
 * The middle of every three by three blocks holds parks and other small services, in walking distance of all nine
 * blocks. One corner block is kept free for a larger service.
 */
const SQUARE_BLOCKS = 3;
const PARK_METERS = 200;

/** Grid coordinates of a block. */
interface Spot {
  readonly column: number;
  readonly row: number;
}

interface Block extends Spot {
  readonly center: GroundPoint;
  /** The name of a zone, "square" for small services, or "civic" for a large service. */
  readonly use: string;
  readonly freeQuarters: GroundPoint[];
}

/** A growing grid of blocks, each with streets, a pipe and a power line. */
export class Town {
  readonly #blocks = new Map<string, Block>();
  readonly #built = new Set<string>();

  /** @param reserve money that is never spent */
  constructor(
    readonly city: World,
    readonly reserve: number,
  ) {}

  get funds(): number {
    return budgetOf(this.city).balance - this.reserve;
  }

  /** Connects the first block to the highway. */
  found(): void {
    connectToHighway(this.city, ORIGIN.x, ORIGIN.z);
    this.#open({ column: 0, row: 0 }, "square");
  }

  blocksOf(use: string): Block[] {
    return [...this.#blocks.values()].filter((block) => block.use === use);
  }

  /** Builds streets, a pipe and a power line at the free block nearest to a place, and zones the block. */
  zone(zone: string, near: GroundPoint): void {
    const { center } = this.#open(this.#nearestFree(near, isForHomesOrWork), zone);
    setZone.act(this.city, { dryRun: false, preserveOccupied: false, zone, center, radius: 40 });
  }

  /** Number of blocks with this zone that have room for more growables. */
  unfinished(zone: string): number {
    return this.blocksOf(zone).filter(({ center }) => {
      const ids = this.city.buildings.near(squareAround(center, BLOCK_METERS / 2 - 8));
      const cells = ids
        .filter(({ prefab, position }) => {
          return (
            prefab.growable && Math.max(Math.abs(position.x - center.x), Math.abs(position.z - center.z)) < 36
          );
        })
        .reduce((sum, { prefab }) => sum + prefab.width * prefab.length, 0);
      return cells < 40;
    }).length;
  }

  /** Builds a service building near a place. Returns false if money is short. */
  build(prefabName: string, near: GroundPoint): boolean {
    const prefab = findBuildingPrefab(prefabName);
    if (!prefab || prefab.cost + 2_000 > this.funds) return false;
    const isSmall = Math.max(prefab.width, prefab.length) <= 4;
    const place = prefab.civic?.pollution ? WORKS : near;
    const spot = isSmall ? this.#squareNear(place) : this.#nearestFree(place);
    const isPark = prefab.civic?.coverage?.kind === "leisure";
    if (isPark && metersBetween(centerOf(spot), near) > PARK_METERS) return true;
    const block = this.#blocks.get(keyOf(spot)) ?? this.#open(spot, isSmall ? "square" : "civic");
    const position = isSmall ? (block.freeQuarters.pop() as GroundPoint) : block.center;
    placeBuilding.act(this.city, {
      dryRun: false,
      buildingPrefab: prefabName,
      position,
      angleDegrees: 0,
      suggest: false,
      strict: false,
    });
    return true;
  }

  /** The nearest block for a small service: a square with a free quarter, or a free block that may become a square. */
  #squareNear(near: GroundPoint): Spot {
    const open = this.blocksOf("square").filter(({ freeQuarters }) => freeQuarters.length > 0);
    const free = [...this.#frontier()].filter(isForSquare);
    const [best] = [...open, ...free].sort(
      (a, b) => metersBetween(centerOf(a), near) - metersBetween(centerOf(b), near),
    );
    return best ?? this.#nearestFree(near);
  }

  /** The nearest suitable free block. The distance to the highway counts too, with less weight. */
  #nearestFree(near: GroundPoint, isSuitable = (spot: Spot) => !isForSquare(spot)): Spot {
    const metersTo = (spot: Spot) =>
      metersBetween(centerOf(spot), near) + 0.3 * metersBetween(centerOf(spot), ORIGIN);
    const free = [...this.#frontier()].filter(isSuitable);
    return free.reduce((best, spot) => (metersTo(spot) < metersTo(best) ? spot : best));
  }

  /** Free blocks next to existing ones. */
  *#frontier(): Generator<Spot> {
    for (const { column, row } of this.#blocks.values()) {
      const beside = [
        { column: column + 1, row },
        { column, row: row + 1 },
      ];
      for (const spot of beside) if (!this.#blocks.has(keyOf(spot))) yield spot;
    }
  }

  #open(spot: Spot, use: string): Block {
    const { column, row } = spot;
    const center = centerOf(spot);
    const freeQuarters = [
      [-16, -16],
      [16, -16],
      [-16, 16],
      [16, 16],
    ].map(([dx = 0, dz = 0]) => ({ x: center.x + dx, z: center.z + dz }));
    const block = { column, row, center, use, freeQuarters };
    this.#blocks.set(keyOf(spot), block);
    const near = [column, row, column + 1, row] as const;
    const right = [column, row, column, row + 1] as const;
    for (const prefab of ["Basic Road", "Water Pipe", "Power Line"]) {
      for (const edge of [near, right]) this.#lay(prefab, ...edge);
    }
    this.#lay("Basic Road", column + 1, row, column + 1, row + 1);
    this.#lay("Basic Road", column, row + 1, column + 1, row + 1);
    return block;
  }

  #lay(prefab: string, column: number, row: number, toColumn: number, toRow: number): void {
    const key = `${prefab} ${column} ${row} ${toColumn} ${toRow}`;
    if (this.#built.has(key)) return;
    this.#built.add(key);
    const [from, to] = [cornerOf(column, row), cornerOf(toColumn, toRow)];
    buildNetwork.act(this.city, road(from.x, from.z, to.x, to.z, prefab));
  }
}

function cornerOf(column: number, row: number): GroundPoint {
  return { x: ORIGIN.x - BLOCK_METERS * column, z: ORIGIN.z - BLOCK_METERS * row };
}

function keyOf({ column, row }: Spot): string {
  return `${column} ${row}`;
}

function isForSquare({ column, row }: Spot): boolean {
  return column % SQUARE_BLOCKS === 1 && row % SQUARE_BLOCKS === 1;
}

function isForHomesOrWork(spot: Spot): boolean {
  return !isForSquare(spot) && (spot.column % SQUARE_BLOCKS !== 2 || spot.row % SQUARE_BLOCKS !== 2);
}

function centerOf({ column, row }: Spot): GroundPoint {
  return cornerOf(column + 0.5, row + 0.5);
}

function metersBetween(a: GroundPoint, b: GroundPoint): number {
  return Math.hypot(a.x - b.x, a.z - b.z);
}
