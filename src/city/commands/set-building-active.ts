import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, shown } from "../wire/fields.js";

const FIELDS = z.object({ id: number(0), active: flag(true) });

/** POST /commands/set-building-active: always acts, there is no dry run. */
export const setBuildingActive: CommandRoute = {
  path: "/commands/set-building-active",
  label: ({ id }) => `Set building active #${shown(id, "0")}`,
  run: (city, body) => {
    const { id, active } = parseFields(FIELDS, body);
    const { prefab, beforeFlags, afterFlags } = city.apply({ type: "set-building-active", id, active });
    return {
      ok: true,
      dryRun: false,
      message: `Building ${id} is switched ${active ? "on" : "off"}.`,
      id,
      active,
      prefab: prefab.name,
      beforeFlags: beforeFlags.join(", "),
      afterFlags: afterFlags.join(", "),
    };
  },
};
