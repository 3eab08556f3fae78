import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { parseFields, shown, text } from "../wire/fields.js";

const DEFAULT_NAME = "AgentAutoSave";
const FIELDS = z.object({ name: text(DEFAULT_NAME) });

/** POST /commands/save: the file appears after the reply. */
export const save: CommandRoute = {
  path: "/commands/save",
  label: ({ name }) => `Save city ${shown(name, DEFAULT_NAME)}`,
  run: (city, body) => {
    const { saveName, path } = city.apply({ type: "save", ...parseFields(FIELDS, body) });
    const message = "The save is being written; it is whole once GET /state/saves lists it.";
    return { ok: true, dryRun: false, message, saveName, path, isSaving: true };
  },
};
