import { z } from "zod";
import { DEFAULT_SAVE_NAME } from "../terms.js";
import { fieldText, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";

export const save = defineCommand({
  path: "/commands/save",
  summary: "Starts a save in the background. Refused while another is being written.",
  label: ({ name }) => `Save city ${fieldText(name, DEFAULT_SAVE_NAME)}`,
  fields: z.object({ name: text(DEFAULT_SAVE_NAME) }),
  act: (city, { name }) => city.save(name),
  reply: ({ saveName, path }) => {
    const message = "The save is being written; it is complete once GET /state/saves lists it.";
    return { ok: true, dryRun: false, message, saveName, path, isSaving: true };
  },
});
