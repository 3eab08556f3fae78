import { z } from "zod";
import { boundsOf, distance, squareAround } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { LARGEST_FOOTPRINT_CELLS } from "../simulation/catalogue/building-prefabs.js";
import { blockCentroid, cellBit, cellCenter, occupiedCellMask } from "../simulation/fabric/zone-blocks.js";
import type { ZoneBlock } from "../simulation/state/entities.js";
import { type World, ZONE_BLOCK_RADIUS_METERS } from "../simulation/state/world.js";
import { FACILITY_SERVICES, GROWABLE_SERVICES, type Service } from "../terms.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireOnMap, requireWithin } from "./requirements.js";
import { buildingReachMeters, MAX_PAINT_RADIUS_METERS, paintBlock, requireZone } from "./zone-painting.js";

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

function isProtected(world: World, block: ZoneBlock): boolean {
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
