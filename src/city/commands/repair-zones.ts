import { z } from "zod";
import { flag, number } from "../wire/requests.js";
import { areUniform, clusterBlocks, isMixed, isPatchy, tallyCells } from "../zone-tally.js";
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
