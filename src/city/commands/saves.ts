/** Commands that save and replace the loaded city. */
import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { type EmbeddedGame, MAPS } from "../simulation/embedded-game.js";
import { SaveFileError } from "../simulation/saves/crp.js";
import { hashOf } from "../simulation/saves/save-files.js";
import { gameTimeMs } from "../simulation/state/calendar.js";
import type { World } from "../simulation/state/world.js";
import { DEFAULT_SAVE_NAME } from "../terms.js";
import { timestamp } from "../views/listing.js";
import { fieldText, flag, number, text } from "../wire/requests.js";
import { defineGameCommand, requireCity } from "./command.js";
import { requireWholeWithin } from "./requirements.js";

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

const MAX_SEED = 2 ** 32 - 1;

const FIELDS = {
  paused: flag(true).describe("The new city is paused until `advance` or `set-simulation-speed`."),
  discard: flag(false).describe(
    "Discards the loaded city without saving it. If false, the city is first saved under an automatic name.",
  ),
};

export const newCity = defineGameCommand({
  path: "/commands/new-city",
  summary:
    "Replaces the loaded city with a new one. The same seed and the same commands at the same frames give the same city.",
  label: ({ seed }) => `Begin new city ${fieldText(seed, "1")}`,
  replacesCity: true,
  fields: z.object({
    ...FIELDS,
    seed: number(1).describe("0 to 4294967295; determines terrain and random events."),
    map: z
      .enum(MAPS, `must be ${MAPS.join(" or ")}`)
      .default("highway")
      .describe("`highway` has a highway to connect to; `empty` is bare land."),
  }),
  act: async (game, { seed, map, paused, discard }) => {
    requireWholeWithin("seed", seed, 0, MAX_SEED);
    const world = await replaceCity(game, discard, () => game.startCity({ seed, map, paused }));
    return { ...(await replyOf(world, `A new city begins with seed ${seed}.`)), map };
  },
});

export const loadCity = defineGameCommand({
  path: "/commands/load-city",
  summary: "Loads a save by the name that GET /state/saves lists.",
  label: ({ name }) => `Load city ${fieldText(name, "")}`,
  replacesCity: true,
  fields: z.object({ ...FIELDS, name: text("") }),
  act: async (game, { name, paused, discard }) => {
    await game.saves.settled();
    const saves = await game.saves.list();
    const save = saves.find((each) => each.name === name);
    if (!save) {
      throw new RefusedError(`No save is named "${name}"; GET /state/saves lists the ${saves.length} saves`);
    }
    // Read first: saving the loaded city may overwrite the oldest automatic save.
    const saved = await game.saves.read(save.path).catch((error: unknown) => {
      throw error instanceof SaveFileError ? new RefusedError(error.message) : error;
    });
    const world = await replaceCity(game, discard, () => game.beginSaved(saved));
    world.paused = paused;
    return { ...(await replyOf(world, `The city of "${name}" is loaded.`)), name };
  },
});

/**
 * Saves the loaded city unless it is discarded, then begins another, and saves that, too: after a crash the newest save is
 * resumed.
 * @throws RefusedError when the loaded city cannot be saved; it stays loaded
 */
async function replaceCity(
  game: EmbeddedGame,
  discard: boolean,
  begin: () => World | Promise<World>,
): Promise<World> {
  const leaving = game.world;
  if (leaving) leaving.isLeaving = true;
  try {
    if (discard || (await game.autosave())) {
      const world = await begin();
      await game.autosave();
      return world;
    }
  } finally {
    if (leaving) leaving.isLeaving = false;
  }
  const message =
    "The loaded city could not be saved, so it stays loaded; discard=true replaces it without saving";
  throw new RefusedError(message);
}

async function replyOf(world: World, message: string) {
  const { seed, paused } = world;
  const { frame, hash } = await hashOf(world);
  const gameTime = timestamp(gameTimeMs(frame));
  return { message, seed, frame, gameTime, paused, hash };
}

export const SAVE_COMMANDS = [loadCity, newCity, save];
