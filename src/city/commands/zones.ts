/** Commands that paint zones and put mottled zoning right. */
import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, point, shown, text } from "../wire/requests.js";

const PAINT_FIELDS = z.object({
  dryRun: flag(false),
  preserveOccupied: flag(true),
  zone: text("ResidentialLow"),
  center: point,
  radius: number(32),
});

/** POST /commands/set-zone: paints whole zone blocks near a place. */
export const setZone: CommandRoute = {
  path: "/commands/set-zone",
  fields: PAINT_FIELDS,
  label: ({ zone }) => `Set zone ${shown(zone, "zone")}`,
  run: (city, body) => {
    const fields = parseFields(PAINT_FIELDS, body);
    const result = city.apply({ type: "set-zone", ...fields });
    const { matchingBlocks, skippedOccupiedBlocks, changedCells } = result;
    const { dryRun, zone, preserveOccupied } = fields;
    if (dryRun) {
      const message = `${matchingBlocks - skippedOccupiedBlocks} blocks would be painted.`;
      return { ok: true, dryRun, message, zone, preserveOccupied, matchingBlocks, skippedOccupiedBlocks };
    }
    const counts = { touchedBlocks: matchingBlocks, skippedOccupiedBlocks, changedCells };
    return { ok: true, dryRun, message: `${changedCells} cells changed.`, zone, preserveOccupied, ...counts };
  },
};

const REPAIR_FIELDS = z.object({ dryRun: flag(false) });

export const repairZonesToGrowables: CommandRoute = {
  path: "/commands/repair-zones-to-growables",
  fields: REPAIR_FIELDS,
  label: () => "Repair zones to growables",
  run: (city, body) => {
    const { dryRun } = parseFields(REPAIR_FIELDS, body);
    const result = city.apply({ type: "repair-zones-to-growables", dryRun });
    const message = `${result.repairableBlocks} blocks can be repaired, ${result.changedCells} cells changed.`;
    return { ok: true, dryRun, message, ...result };
  },
};

const REPAIR_CLUSTER_FIELDS = z.object({
  dryRun: flag(false),
  includePatchy: flag(true),
  fillUnzoned: flag(true),
  preferGrowableZone: flag(true),
  gridSize: number(80),
  minMinorityCells: number(3),
  minUnzonedCells: number(6),
});

export const repairZoneClusters: CommandRoute = {
  path: "/commands/repair-zone-clusters",
  fields: REPAIR_CLUSTER_FIELDS,
  label: () => "Repair zone clusters",
  run: (city, body) => {
    const fields = parseFields(REPAIR_CLUSTER_FIELDS, body);
    const { gridSize, ...result } = city.apply({ type: "repair-zone-clusters", ...fields });
    const { dryRun, includePatchy, fillUnzoned, preferGrowableZone } = fields;
    const message = `${result.repairableClusters} clusters can be repaired, ${result.changedCells} cells changed.`;
    const choices = { gridSize, includePatchy, fillUnzoned, preferGrowableZone };
    return { ok: true, dryRun, message, ...choices, ...result };
  },
};
