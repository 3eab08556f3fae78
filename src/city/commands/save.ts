import { z } from "zod";
import { DEFAULT_SAVE_NAME } from "../terms.js";
import { fieldText, text } from "../wire/requests.js";
import { defineGameCommand, requireCity } from "./command.js";

export const save = defineGameCommand({
  path: "/commands/save",
  summary: "Starts a save in the background. Refused while another is being written.",
  label: ({ name }) => `Save city ${fieldText(name, DEFAULT_SAVE_NAME)}`,
  replacesCity: false,
  fields: z.object({ name: text(DEFAULT_SAVE_NAME) }),
  act: async (game, { name }) => {
    const { saveName, path } = game.saves.begin(requireCity(game), name);
    const message = "The save is being written; it is complete once GET /state/saves lists it.";
    return { message, saveName, path, isSaving: true };
  },
});
