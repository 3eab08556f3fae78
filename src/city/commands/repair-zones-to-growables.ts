import { z } from "zod";
import { flag } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { expectedZones, paintBlock } from "./zone-painting.js";

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
