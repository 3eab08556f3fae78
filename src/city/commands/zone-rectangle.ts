import { z } from "zod";
import { boundsOf } from "../geometry.js";
import { cellBit, cellCenter, occupiedCellMask } from "../simulation/fabric/zone-blocks.js";
import { ZONE_BLOCK_RADIUS_METERS } from "../simulation/state/world.js";
import { fieldText, flag, groundPoint, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireOnMap, requireWithin } from "./requirements.js";
import { paintCells, requireZone } from "./zone-painting.js";

const MAX_SIDE_METERS = 2048;

export const zoneRectangle = defineCommand({
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
      counts.changedCells += paintCells(world, block, zone, mask, dryRun);
    }
    const message = `${counts.changedCells} cells ${dryRun ? "would be" : "were"} changed.`;
    return { message, zone, preserveOccupied, ...counts };
  },
});
