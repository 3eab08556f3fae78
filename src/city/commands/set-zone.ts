import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, point, shown, text } from "../wire/fields.js";

const FIELDS = z.object({
  dryRun: flag(false),
  preserveOccupied: flag(true),
  zone: text("ResidentialLow"),
  center: point,
  radius: number(32),
});

/** POST /commands/set-zone: paints whole zone blocks near a place. */
export const setZone: CommandRoute = {
  path: "/commands/set-zone",
  label: ({ zone }) => `Set zone ${shown(zone, "zone")}`,
  run: (city, body) => {
    const fields = parseFields(FIELDS, body);
    const { matchingBlocks, skippedOccupiedBlocks, changedCells } = city.apply({
      type: "set-zone",
      ...fields,
    });
    const { dryRun, zone, preserveOccupied } = fields;
    const common = { zone, preserveOccupied };
    return dryRun
      ? {
          ok: true,
          dryRun,
          message: `${matchingBlocks - skippedOccupiedBlocks} blocks would be painted.`,
          ...common,
          matchingBlocks,
          skippedOccupiedBlocks,
        }
      : {
          ok: true,
          dryRun,
          message: `${changedCells} cells changed.`,
          ...common,
          touchedBlocks: matchingBlocks,
          skippedOccupiedBlocks,
          changedCells,
        };
  },
};
