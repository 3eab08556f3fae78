/**
 * Zone blocks: strips of cells along a road. A block knows which of its cells are usable and which are
 * occupied.
 *
 * As in the game, a straight segment has up to four blocks: one on each side at each end. Blocks are four
 * cells deep. If blocks overlap, the older one owns the ground.
 */

import {
  BLOCK_COLUMNS,
  type Box,
  boxAround,
  CELL_METERS,
  distance,
  distanceToLine,
  type Footprint,
  footprintRadius,
  type GroundPoint,
  lengthOf,
  pointInBlock,
  squareAround,
  toFootprintCoordinates,
} from "../../geometry.js";
import { ZONES, type Zone } from "../../terms.js";
import { commonZoneOf } from "../../zone-tally.js";
import type { Building, NetSegment, ZoneBlock } from "../state/entities.js";
import { type World, ZONE_BLOCK_RADIUS_METERS } from "../state/world.js";

const MAX_ROWS = 8;
const HALF_DIAGONAL_METERS = (CELL_METERS / 2) * Math.SQRT2 + 0.1;
/** A cell counts as outside an area if its centre is closer than this to the area's edge. */
const EDGE_TOLERANCE_METERS = 0.1;

interface BlockPlan {
  readonly position: GroundPoint;
  readonly angleRadians: number;
  readonly rows: number;
}

/** Creates the blocks of a new segment whose prefab allows zoning, on dry land. Stops at the city's limit of blocks. */
export function createBlocks(world: World, segment: NetSegment): void {
  if (!segment.prefab.zoning) return;
  for (const plan of planBlocks(segment.start, segment.end, segment.prefab.widthMeters)) {
    const middle = blockCentroid(plan);
    if (world.terrain.isWater(middle.x, middle.z)) continue;
    const id = world.blocks.nextId();
    if (id === 0) return;
    const { x, z } = plan.position;
    world.blocks.put({
      id,
      segmentId: segment.id,
      position: { x, y: world.terrain.surfaceHeight(x, z), z },
      rows: plan.rows,
      cells: new Uint8Array(plan.rows * BLOCK_COLUMNS),
      angleRadians: plan.angleRadians,
      age: world.buildIndex,
      commonZone: 0,
      usable: null,
      occupied: null,
    });
    segment.blockIds.push(id);
  }
}

/** Moves a segment's blocks to the edges of its new prefab. Zones and buildings on them stay. */
export function moveBlocks(world: World, segment: NetSegment): void {
  const plans = planBlocks(segment.start, segment.end, segment.prefab.widthMeters);
  segment.blockIds.forEach((id) => {
    const block = world.blocks.at(id);
    const [{ x, z }] = plans
      .map((plan) => plan.position)
      .sort((a, b) => distance(a, block.position) - distance(b, block.position)) as [GroundPoint];
    world.blocks.remove(id);
    const position = { x, y: world.terrain.surfaceHeight(x, z), z };
    world.blocks.put({ ...block, position, usable: null, occupied: null });
  });
}

/** Zone at a place; `Unzoned` if no zoned cell is there. */
export function zoneAt(world: World, place: GroundPoint): Zone {
  for (const block of world.blocks.near(squareAround(place, ZONE_BLOCK_RADIUS_METERS))) {
    if (!ownsGround(block, place)) continue;
    for (const [i, zone] of block.cells.entries()) {
      const center = centerOfCell(block, i);
      if (zone !== 0 && distance(center, place) <= HALF_DIAGONAL_METERS) return ZONES[zone] as Zone;
    }
  }
  return "Unzoned";
}

/** Replaces the zones of a block. */
export function setCells(world: World, block: ZoneBlock, cells: Readonly<Uint8Array>): void {
  world.paintings++;
  Object.assign(block, { cells, commonZone: commonZoneOf(cells) });
}

interface ZonedCell {
  readonly center: GroundPoint;
  readonly zone: number;
}

/** Cells with a zone along a segment. */
export function zonedCells(world: World, segment: NetSegment): ZonedCell[] {
  return segment.blockIds.flatMap((id) => {
    const block = world.blocks.at(id);
    return [...block.cells].flatMap((zone, i) =>
      zone === 0 ? [] : [{ center: centerOfCell(block, i), zone }],
    );
  });
}

/** Zones the blocks of a segment like the cells that lay there before. */
export function zoneLike(world: World, segment: NetSegment, before: readonly ZonedCell[]): void {
  for (const id of segment.blockIds) {
    const block = world.blocks.at(id);
    const zoneOf = (_: number, i: number) => {
      const center = centerOfCell(block, i);
      return before.find((cell) => distance(cell.center, center) <= CELL_METERS / 2)?.zone ?? 0;
    };
    setCells(world, block, block.cells.map(zoneOf));
  }
}

function centerOfCell(block: ZoneBlock, index: number): GroundPoint {
  return cellCenter(block, index % BLOCK_COLUMNS, Math.floor(index / BLOCK_COLUMNS));
}

/** Removes a segment's blocks. Buildings on them stay, but no longer belong to a block. */
export function removeBlocks(world: World, segment: NetSegment): void {
  for (const id of segment.blockIds) {
    for (const building of buildingsOnBlock(world, world.blocks.at(id))) {
      Object.assign(building, { blockId: 0, lotMask: 0 });
    }
    world.blocks.remove(id);
  }
  segment.blockIds.length = 0;
}

/** The growables whose lots are on the block. */
export function buildingsOnBlock(world: World, { id, position }: ZoneBlock): Building[] {
  return world.buildings
    .near(squareAround(position, ZONE_BLOCK_RADIUS_METERS))
    .filter(({ blockId }) => blockId === id);
}

/** Invalidates the cached usable cells of blocks near an added or removed road. */
export function invalidateUsableCells(world: World, segment: Pick<NetSegment, "prefab" | "start" | "end">) {
  const grow = segment.prefab.widthMeters / 2 + 5 * CELL_METERS + ZONE_BLOCK_RADIUS_METERS;
  for (const block of world.blocks.near(boxAround(segment, grow))) block.usable = null;
}

/** Invalidates the cached occupied cells of blocks near a removed building. */
export function invalidateOccupiedCells(world: World, bounds: Box): void {
  for (const block of world.blocks.near(bounds)) block.occupied = null;
}

/** Marks the cells under a new building as occupied. */
export function markOccupiedCells(world: World, bounds: Box, building: Footprint): void {
  for (const block of world.blocks.near(bounds)) {
    if (block.occupied !== null) block.occupied |= coveredCells(block, building);
  }
}

/** Centre of cell (column, row). */
export function cellCenter(
  block: Pick<BlockPlan, "position" | "angleRadians">,
  column: number,
  row: number,
): GroundPoint {
  return pointInBlock(block, column - 3.5, row - 3.5);
}

/** Centre of a block: the mean of its cell centres. */
export function blockCentroid(block: BlockPlan): GroundPoint {
  return cellCenter(block, (BLOCK_COLUMNS - 1) / 2, (block.rows - 1) / 2);
}

/** The bit of a cell in the block's masks. */
export function cellBit(column: number, row: number): number {
  return 1 << (row * BLOCK_COLUMNS + column);
}

/** Cells that can hold a building (dry, not under a road, not owned by an older block), one bit per cell. */
export function usableCellMask(world: World, block: ZoneBlock): number {
  if (block.usable === null) block.usable = cellsWhere(block, usabilityTest(world, block));
  return block.usable;
}

/** Cells under a building or in a lot: buildings of a narrowed road no longer stand on their lots. */
export function occupiedCellMask(world: World, block: ZoneBlock): number {
  if (block.occupied === null) {
    block.occupied = 0;
    for (const building of world.buildings.near(squareAround(block.position, ZONE_BLOCK_RADIUS_METERS))) {
      block.occupied |= coveredCells(block, building);
      if (building.blockId === block.id) block.occupied |= building.lotMask;
    }
  }
  return block.occupied;
}

function coveredCells(block: ZoneBlock, building: Footprint): number {
  const away = distance(block.position, building.position);
  if (away > ZONE_BLOCK_RADIUS_METERS + footprintRadius(building)) return 0;
  return cellsWhere(block, isUnder(building));
}

function isUnder(building: Footprint): (center: GroundPoint) => boolean {
  const into = toFootprintCoordinates(building);
  const halfWidth = (building.prefab.width * CELL_METERS) / 2 - EDGE_TOLERANCE_METERS;
  const halfLength = (building.prefab.length * CELL_METERS) / 2 - EDGE_TOLERANCE_METERS;
  return (center) => {
    const { x, z } = into(center);
    return Math.abs(x) <= halfWidth && Math.abs(z) <= halfLength;
  };
}

function usabilityTest(world: World, block: ZoneBlock): (center: GroundPoint) => boolean {
  const roads = world.segments
    .near(squareAround(block.position, ZONE_BLOCK_RADIUS_METERS + 2 * CELL_METERS))
    .filter(({ prefab }) => prefab.carries === "traffic" && prefab.elevation === "ground");
  const older = world.blocks
    .near(squareAround(block.position, ZONE_BLOCK_RADIUS_METERS))
    .filter((other) => other.age < block.age);
  return (center) =>
    !world.terrain.isWater(center.x, center.z) &&
    !roads.some((road) => {
      const halfWidth = road.prefab.widthMeters / 2;
      return distanceToLine(center, road) < halfWidth - EDGE_TOLERANCE_METERS;
    }) &&
    !older.some((other) => ownsGround(other, center));
}

function ownsGround(block: ZoneBlock, point: GroundPoint): boolean {
  const cos = Math.cos(block.angleRadians);
  const sin = Math.sin(block.angleRadians);
  const dx = point.x - block.position.x;
  const dz = point.z - block.position.z;
  const depth = dx * cos + dz * sin;
  const along = dx * sin - dz * cos;
  const farRow = CELL_METERS * (block.rows - 4);
  const margin = EDGE_TOLERANCE_METERS;
  return depth > -32 + margin && depth < -margin && along > -32 + margin && along < farRow - margin;
}

function cellsWhere(block: ZoneBlock, test: (center: GroundPoint) => boolean): number {
  let mask = 0;
  for (let row = 0; row < block.rows; row++) {
    for (let column = 0; column < BLOCK_COLUMNS; column++) {
      if (test(cellCenter(block, column, row))) mask |= cellBit(column, row);
    }
  }
  return mask;
}

/** Positions of the blocks of a straight segment, as in the game: start left, start right, end left, end right. */
function planBlocks(start: GroundPoint, end: GroundPoint, widthMeters: number): BlockPlan[] {
  const length = lengthOf({ start, end });
  const d = { x: (end.x - start.x) / length, z: (end.z - start.z) / length };
  const cells = Math.floor(length / CELL_METERS + 0.1);
  const fromStart = cells <= MAX_ROWS ? cells : Math.floor((cells + 1) / 2);
  const fromEnd = cells <= MAX_ROWS ? 0 : Math.floor(cells / 2);
  const rest = length - CELL_METERS * cells;
  const side = Math.max(8, widthMeters / 2) + 32;
  return [
    ...planPair(start, d, side, fromStart, 0),
    ...planPair(end, { x: -d.x, z: -d.z }, side, fromEnd, rest),
  ];
}

/**
 * Plans two blocks, one on the left and one on the right of a road. The blocks start `offset` metres from the
 * end `from` of the road, and `d` is the road's direction there.
 */
function planPair(
  from: GroundPoint,
  d: GroundPoint,
  side: number,
  count: number,
  offset: number,
): BlockPlan[] {
  if (count <= 0) return [];
  const rows = Math.min(count, MAX_ROWS);
  const angle = Math.atan2(d.x, -d.z);
  const at = (along: number, across: number) => ({
    x: from.x + along * d.x - across * d.z,
    z: from.z + along * d.z + across * d.x,
  });
  return [
    { position: at(32 + offset, side), angleRadians: angle, rows },
    { position: at(CELL_METERS * (count - 4) + offset, -side), angleRadians: angle + Math.PI, rows },
  ];
}
