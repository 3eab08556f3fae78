import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields } from "../wire/fields.js";

const GROWABLE_FIELDS = z.object({ dryRun: flag(false) });

const CLUSTER_FIELDS = z.object({
  dryRun: flag(false),
  includePatchy: flag(true),
  fillUnzoned: flag(true),
  preferGrowableZone: flag(true),
  gridSize: number(80),
  minMinorityCells: number(3),
  minUnzonedCells: number(6),
});

/** POST /commands/repair-zones-to-growables */
export const repairZonesToGrowables: CommandRoute = {
  path: "/commands/repair-zones-to-growables",
  label: () => "Repair zones to growables",
  run: (city, body) => {
    const { dryRun } = parseFields(GROWABLE_FIELDS, body);
    const result = city.apply({ type: "repair-zones-to-growables", dryRun });
    const message = `${result.repairableBlocks} blocks can be repaired, ${result.changedCells} cells changed.`;
    return { ok: true, dryRun, message, ...result };
  },
};

/** POST /commands/repair-zone-clusters */
export const repairZoneClusters: CommandRoute = {
  path: "/commands/repair-zone-clusters",
  label: () => "Repair zone clusters",
  run: (city, body) => {
    const fields = parseFields(CLUSTER_FIELDS, body);
    const { gridSize, ...result } = city.apply({ type: "repair-zone-clusters", ...fields });
    const { dryRun, includePatchy, fillUnzoned, preferGrowableZone } = fields;
    const message = `${result.repairableClusters} clusters can be repaired, ${result.changedCells} cells changed.`;
    const choices = { gridSize, includePatchy, fillUnzoned, preferGrowableZone };
    return { ok: true, dryRun, message, ...choices, ...result };
  },
};
