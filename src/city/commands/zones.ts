/** Commands that zone and repair zones, and the painting of zone blocks that they share. */
import { z } from "zod";
import { boundsOf, CELL_METERS, distance, squareAround } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { BUILDING_PREFABS, LARGEST_FOOTPRINT_CELLS } from "../simulation/catalogue/building-prefabs.js";
import {
  blockCentroid,
  cellBit,
  cellCenter,
  occupiedCellMask,
  setCells,
} from "../simulation/fabric/zone-blocks.js";
import { SquareGrid } from "../simulation/state/collections.js";
import type { ZoneBlock } from "../simulation/state/entities.js";
import { type World, ZONE_BLOCK_RADIUS_METERS } from "../simulation/state/world.js";
import {
  FACILITY_SERVICES,
  GROWABLE_SERVICES,
  PAINTABLE_ZONES,
  type Service,
  ZONES,
  type Zone,
  zoneOf,
} from "../terms.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { areUniform, clusterBlocks, isMixed, isPatchy, tallyCells } from "../zone-tally.js";
import { defineCommand } from "./command.js";
import { recordPainting } from "./journal.js";
import { requireOnMap, requireWithin } from "./requirements.js";

export const MAX_PAINT_RADIUS_METERS = 256;
/** Distance from a building's centre to its blocks, at most: this number plus half of the building's longer side. */
const BLOCK_NEIGHBOURHOOD_METERS = 38;
const LARGEST_GROWABLE_CELLS = Math.max(
  ...BUILDING_PREFABS.filter(({ growable }) => growable).flatMap(({ width, length }) => [width, length]),
);
/**
 * A block is ambiguous if growables of two zones are about equally near: their squared distances to the block
 * differ by less than this number of square metres.
 */
const AMBIGUOUS_SQUARE_METERS = 100;

/** @throws RefusedError unless the zone may be painted */
export function requireZone(requested: string): Zone {
  const zone = PAINTABLE_ZONES.find((name) => name === requested);
  if (zone) return zone;
  throw new RefusedError(`Unknown zone "${requested}"; it must be one of ${PAINTABLE_ZONES.join(", ")}`);
}

/** Largest distance from a building's centre to the stored position of a block that it belongs to. */
function buildingReachMeters(...sidesInCells: readonly number[]): number {
  return (Math.max(...sidesInCells) / 2) * CELL_METERS + BLOCK_NEIGHBOURHOOD_METERS;
}

/** @returns number of paintable cells that change, or would change in a dry run */
function paintBlock(
  world: World,
  block: ZoneBlock,
  zone: Zone,
  mayPaint: (cell: number, index: number) => boolean,
  dryRun = false,
): number {
  const value = ZONES.indexOf(zone);
  if (block.commonZone === value) return 0;
  const isWrong = (cell: number, index: number) => cell !== value && mayPaint(cell, index);
  const wrong = block.cells.filter(isWrong).length;
  const painted = () => block.cells.map((cell, index) => (isWrong(cell, index) ? value : cell));
  if (dryRun || wrong === 0) return wrong;
  recordPainting(world, block);
  setCells(world, block, painted());
  return wrong;
}

type ExpectedZone = Zone | "ambiguous" | null;
const NONE = -1;
const AMBIGUOUS = -2;

/**
 * Returns the expected zone of each block: the zone of the nearest growable, or null if none is near. Visits
 * the growables in id order. If a growable of another zone is about as near as the nearest growable so far,
 * the block becomes ambiguous.
 */
function expectedZones(world: World): (block: ZoneBlock) => ExpectedZone {
  const grid = new SquareGrid(world.blocks.all(), buildingReachMeters(LARGEST_GROWABLE_CELLS));
  const count = world.blocks.size;
  const zones = new Int8Array(count).fill(NONE);
  const nearest = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  for (const { prefab, position } of world.buildings.all()) {
    if (!prefab.growable) continue;
    const [own, reach] = [
      ZONES.indexOf(zoneOf(prefab)),
      buildingReachMeters(prefab.width, prefab.length) ** 2,
    ];
    grid.visitAround(position, (at, squared) => {
      if (squared > reach || zones[at] === AMBIGUOUS) return;
      if (squared < (nearest[at] as number)) {
        zones[at] = own;
        nearest[at] = squared;
      } else if (own !== zones[at] && squared - (nearest[at] as number) < AMBIGUOUS_SQUARE_METERS) {
        zones[at] = AMBIGUOUS;
      }
    });
  }
  return ({ id }) => {
    const zone = zones[grid.indexOf(id)] as number;
    if (zone === AMBIGUOUS) return "ambiguous";
    return zone === NONE ? null : (ZONES[zone] as Zone);
  };
}

/** With `preserveOccupied`, blocks near buildings of these services are not painted. */
const PROTECTED_SERVICES: ReadonlySet<Service> = new Set<Service>([
  ...GROWABLE_SERVICES,
  ...FACILITY_SERVICES,
  "Beautification",
  "Monument",
]);

const CIRCLE = z.object({
  dryRun: flag(false),
  preserveOccupied: flag(true),
  zone: text("ResidentialLow"),
  center: groundPoint,
  radius: number(32).describe("Metres, above 0 and at most 256."),
});

export const setZone = defineCommand({
  path: "/commands/set-zone",
  summary: "Paints whole blocks whose stored position or cell centroid lies within the radius.",
  label: ({ zone }) => `Set zone ${fieldText(zone, "zone")}`,
  fields: CIRCLE,
  act: (world, fields) => {
    const { dryRun, zone, preserveOccupied } = fields;
    const { matchingBlocks, skippedOccupiedBlocks, changedCells } = paintCircle(world, fields);
    if (dryRun) {
      const message = `${matchingBlocks - skippedOccupiedBlocks} blocks would be painted.`;
      return { message, zone, preserveOccupied, matchingBlocks, skippedOccupiedBlocks };
    }
    const counts = { touchedBlocks: matchingBlocks, skippedOccupiedBlocks, changedCells };
    return { message: `${changedCells} cells changed.`, zone, preserveOccupied, ...counts };
  },
});

/** @throws RefusedError for an unknown zone, a place off the map or a wrong radius */
export function paintCircle(
  world: World,
  { dryRun, preserveOccupied, zone: wanted, center, radius }: z.output<typeof CIRCLE>,
) {
  if (!(radius > 0 && radius <= MAX_PAINT_RADIUS_METERS)) {
    const message = `The radius must be above 0 and at most ${MAX_PAINT_RADIUS_METERS} m, not ${radius}`;
    throw new RefusedError(message);
  }
  const zone = requireZone(wanted);
  requireOnMap(center);
  const matching = world.blocks
    .near(squareAround(center, radius + ZONE_BLOCK_RADIUS_METERS))
    .filter((block) => {
      return Math.min(distance(block.position, center), distance(blockCentroid(block), center)) <= radius;
    });
  let skippedOccupiedBlocks = 0;
  let changedCells = 0;
  for (const block of matching) {
    if (preserveOccupied && isProtected(world, block)) skippedOccupiedBlocks++;
    else if (!dryRun) changedCells += paintBlock(world, block, zone, () => true);
  }
  return { matchingBlocks: matching.length, skippedOccupiedBlocks, changedCells };
}

/** Whether a block is near a building, so that `preserveOccupied` leaves it as it is. */
export function isProtected(world: World, block: ZoneBlock): boolean {
  return world.buildings
    .near(squareAround(block.position, buildingReachMeters(LARGEST_FOOTPRINT_CELLS)))
    .some(
      ({ prefab, position }) =>
        PROTECTED_SERVICES.has(prefab.service) &&
        !prefab.helper &&
        distance(position, block.position) <= buildingReachMeters(prefab.width, prefab.length),
    );
}

const MAX_SIDE_METERS = 2048;

const zoneRectangle = defineCommand({
  path: "/commands/zone-rectangle",
  summary: "Paints the cells whose centres lie within a rectangle.",
  label: ({ zone }) => `Zone rectangle ${fieldText(zone, "zone")}`,
  fields: z.object({
    dryRun: flag(false),
    preserveOccupied: flag(true).describe("Leaves cells under a building as they are."),
    zone: text("ResidentialLow"),
    from: groundPoint.describe("Opposite corners, at most 2048 m apart in x and z."),
    to: groundPoint,
  }),
  act: (world, { dryRun, preserveOccupied, zone: wanted, from, to }) => {
    const zone = requireZone(wanted);
    requireOnMap(from);
    requireOnMap(to);
    const { minX, maxX, minZ, maxZ } = boundsOf([from, to]);
    requireWithin("The width", maxX - minX, 0, MAX_SIDE_METERS);
    requireWithin("The depth", maxZ - minZ, 0, MAX_SIDE_METERS);
    const margin = ZONE_BLOCK_RADIUS_METERS;
    const near = { minX: minX - margin, maxX: maxX + margin, minZ: minZ - margin, maxZ: maxZ + margin };
    const counts = { touchedBlocks: 0, matchingCells: 0, skippedOccupiedCells: 0, changedCells: 0 };
    for (const block of world.blocks.near(near)) {
      const taken = preserveOccupied ? occupiedCellMask(world, block) : 0;
      let mask = 0;
      for (let cell = 0; cell < block.cells.length; cell++) {
        const [column, row] = [cell % 4, Math.floor(cell / 4)];
        const { x, z } = cellCenter(block, column, row);
        if (x < minX || x > maxX || z < minZ || z > maxZ) continue;
        counts.matchingCells++;
        if ((taken & cellBit(column, row)) !== 0) counts.skippedOccupiedCells++;
        else mask |= cellBit(column, row);
      }
      if (mask === 0) continue;
      counts.touchedBlocks++;
      const isInside = (_cell: number, i: number) => ((mask >>> i) & 1) === 1;
      counts.changedCells += paintBlock(world, block, zone, isInside, dryRun);
    }
    const message = `${counts.changedCells} cells ${dryRun ? "would be" : "were"} changed.`;
    return { message, zone, preserveOccupied, ...counts };
  },
});

export const ZONE_COMMANDS = [setZone, zoneRectangle];

export const repairZonesToGrowables = defineCommand({
  path: "/commands/repair-zones-to-growables",
  summary: "Gives the zoned cells of each block the zone of the nearest growable.",
  label: () => "Repair zones to growables",
  fields: z.object({ dryRun: flag(false) }),
  act: (world, { dryRun }) => {
    let repairableBlocks = 0;
    let skippedMixedUseBlocks = 0;
    let changedCells = 0;
    const expectedOf = expectedZones(world);
    for (const block of world.blocks.all()) {
      const expected = expectedOf(block);
      if (expected === "ambiguous") skippedMixedUseBlocks++;
      if (expected === "ambiguous" || expected === null) continue;
      const wrongCells = paintBlock(world, block, expected, (cell) => cell !== 0, dryRun);
      if (wrongCells > 0) repairableBlocks++;
      if (!dryRun) changedCells += wrongCells;
    }
    const message = `${repairableBlocks} blocks can be repaired, ${changedCells} cells changed.`;
    const inspectedBlocks = world.blocks.size;
    return { message, inspectedBlocks, repairableBlocks, skippedMixedUseBlocks, changedCells };
  },
});

const MIN_GRID_METERS = 24;
const MAX_GRID_METERS = 160;

export const repairZoneClusters = defineCommand({
  path: "/commands/repair-zone-clusters",
  summary:
    "Gives the cells of each mottled cluster its dominant zone, or the zone of the growable nearest to each block.",
  label: () => "Repair zone clusters",
  fields: z.object({
    dryRun: flag(false),
    includePatchy: flag(true),
    fillUnzoned: flag(true),
    preferGrowableZone: flag(true),
    gridSize: number(80).describe("Metres, clamped to 24..160."),
    minMinorityCells: number(3).describe("At least 1."),
    minUnzonedCells: number(6).describe("At least 1."),
  }),
  act: (world, { dryRun, includePatchy, fillUnzoned, preferGrowableZone, ...fields }) => {
    const gridSize = Math.min(Math.max(fields.gridSize, MIN_GRID_METERS), MAX_GRID_METERS);
    const thresholds = {
      minMinorityCells: Math.max(fields.minMinorityCells, 1),
      minUnzonedCells: Math.max(fields.minUnzonedCells, 1),
    };
    const clusters = clusterBlocks(world.blocks.all(), gridSize);
    const expectedOf = preferGrowableZone && !dryRun ? expectedZones(world) : () => null;
    let repairableClusters = 0;
    let repairedBlocks = 0;
    let changedCells = 0;
    for (const cluster of clusters) {
      if (areUniform(cluster.blocks)) continue;
      const tally = tallyCells(cluster.blocks);
      if (!isMixed(tally, thresholds) && !(includePatchy && isPatchy(tally, thresholds))) continue;
      repairableClusters++;
      if (dryRun) continue;
      for (const { id } of cluster.blocks) {
        const block = world.blocks.at(id);
        const expected = expectedOf(block);
        const target = expected === null || expected === "ambiguous" ? tally.dominantZone : expected;
        const changed = paintBlock(world, block, target, (cell) => cell !== 0 || fillUnzoned);
        changedCells += changed;
        if (changed > 0) repairedBlocks++;
      }
    }
    const message = `${repairableClusters} clusters can be repaired, ${changedCells} cells changed.`;
    const choices = { gridSize, includePatchy, fillUnzoned, preferGrowableZone };
    const counts = { clusterCount: clusters.length, repairableClusters, repairedBlocks, changedCells };
    return { message, ...choices, ...counts };
  },
});

export const ZONE_REPAIRS = [repairZoneClusters, repairZonesToGrowables];
