import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, shown, text } from "../wire/fields.js";

const FIELDS = z.object({
  dryRun: flag(false),
  entityType: text(""),
  id: number(0),
  keepNodes: flag(false),
});

/** POST /commands/bulldoze */
export const bulldoze: CommandRoute = {
  path: "/commands/bulldoze",
  label: ({ entityType, id }) => `Bulldoze ${shown(entityType, "entity")} #${shown(id, "0")}`,
  run: (city, body) => {
    const fields = parseFields(FIELDS, body);
    const { entityType, id } = city.apply({ type: "bulldoze", ...fields });
    const { dryRun, keepNodes } = fields;
    const message = `${entityType} ${id} ${dryRun ? "can be" : "was"} removed.`;
    return {
      ok: true,
      dryRun,
      message,
      entityType,
      id,
      ...(entityType === "netSegment" ? { keepNodes } : {}),
    };
  },
};
