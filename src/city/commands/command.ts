/** Defines commands of the bridge. A command is a POST endpoint that changes the city. */
import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import type { EmbeddedGame } from "../simulation/embedded-game.js";
import type { SimulatedCity } from "../simulation/simulated-city.js";
import type { JsonObject } from "../wire/answers.js";
import { type Body, parseFields, text, unknownFields } from "../wire/requests.js";

export interface Command<Shape extends z.core.$ZodLooseShape, Result> {
  readonly path: string;
  /** Summary of the command in the OpenAPI document. */
  readonly summary: string;
  /** Returns the overlay line of the command. `body` has not been validated. */
  readonly label: (body: Body) => string;
  readonly fields: z.ZodObject<Shape>;
  /**
   * Checks everything, then changes the city, within one turn of the event loop. With `dryRun` it only checks.
   * @throws CommandRefusedError; the city is then unchanged
   */
  readonly act: (city: SimulatedCity, fields: z.output<z.ZodObject<Shape>>) => Result;
  readonly reply: (result: Result, fields: z.output<z.ZodObject<Shape>>, city: SimulatedCity) => JsonObject;
}

/** A command as the HTTP routes use it, without the types of its fields and result. */
export interface CommandRoute {
  readonly path: string;
  readonly summary: string;
  readonly label: (body: Body) => string;
  readonly fields: z.ZodObject;
  /** @throws CommandRefusedError, FieldError */
  readonly run: (city: SimulatedCity, body: Body) => JsonObject;
}

const OP_ID = {
  opId: text("").describe(
    "Id of the operation. Repeating a command with the same id returns the first reply and changes nothing.",
  ),
};

export function defineCommand<Shape extends z.core.$ZodLooseShape, Result>(
  command: Command<Shape, Result>,
): Omit<Command<Shape, Result>, "fields"> & CommandRoute {
  const fields = command.fields.extend(OP_ID);
  const act: typeof command.act = (city, given) => {
    // A running save copies the city in pieces. The copy has to finish before the city changes.
    city.world.capture?.finish();
    return command.act(city, given);
  };
  const run = (city: SimulatedCity, body: Body) => {
    const given = parseFields(command.fields, body);
    return withWarnings(fields, body, command.reply(act(city, given), given, city));
  };
  return {
    ...command,
    fields,
    act,
    run: (city, body) => {
      parseFields(z.object(OP_ID), body);
      const key = keyOf(command.path, body);
      const earlier = city.world.replies.get(key);
      if (earlier !== undefined) return earlier;
      const reply = run(city, body);
      if (reply.dryRun !== true) remember(city.world.replies, key, reply);
      return reply;
    },
  };
}

/** A command that runs for long or replaces the city. */
export interface GameCommandRoute extends Omit<CommandRoute, "run"> {
  /** Whether the command replaces the city. Later commands wait until it has ended. It needs no loaded city. */
  readonly replacesCity: boolean;
  /** @throws CommandRefusedError, FieldError, HttpError 409 */
  readonly run: (game: EmbeddedGame, body: Body) => Promise<JsonObject>;
}

interface GameCommand<Shape extends z.core.$ZodLooseShape>
  extends Pick<GameCommandRoute, "path" | "summary" | "label" | "replacesCity"> {
  readonly fields: z.ZodObject<Shape>;
  /** Runs the command and returns the JSON of its reply. */
  readonly act: (game: EmbeddedGame, fields: z.output<z.ZodObject<Shape>>) => Promise<JsonObject>;
}

export function defineGameCommand<Shape extends z.core.$ZodLooseShape>(
  command: GameCommand<Shape>,
): GameCommandRoute {
  const fields = command.fields.extend(OP_ID);
  const run = async (game: EmbeddedGame, body: Body) =>
    withWarnings(fields, body, await command.act(game, parseFields(command.fields, body)));
  return {
    ...command,
    fields,
    run: async (game, body) => {
      const started = command.replacesCity ? null : requireCity(game);
      parseFields(z.object(OP_ID), body);
      const key = keyOf(command.path, body);
      const known = repliesByGame.get(game) ?? new Map<string, Promise<JsonObject>>();
      repliesByGame.set(game, known);
      const earlier = known.get(key) ?? game.city?.world.replies.get(key);
      if (earlier !== undefined) return earlier;
      const running = run(game, body);
      remember(known, key, running);
      try {
        const reply = await running;
        remember((started ?? game.city)?.world.replies, key, reply);
        if (started) known.delete(key);
        return reply;
      } catch (error) {
        known.delete(key);
        throw error;
      }
    },
  };
}

/** @throws HttpError 409 if no city is loaded */
export function requireCity({ city }: EmbeddedGame): SimulatedCity {
  if (!city) throw new HttpError(409, "No city is loaded.");
  return city;
}

/** @throws HttpError 409 unless this city is loaded */
export function requireLoaded({ city }: EmbeddedGame, expected: SimulatedCity): void {
  if (city === expected) return;
  throw new HttpError(409, "The city was replaced before this command ran, so the command changed nothing.");
}

/** Adds unknown fields of the body to the `warnings` of the reply. */
function withWarnings(fields: z.ZodObject, body: Body, reply: JsonObject): JsonObject {
  const unknown = unknownFields(fields, body);
  if (unknown.length === 0) return reply;
  const known = Array.isArray(reply.warnings) ? reply.warnings : [];
  return { ...reply, warnings: [...known, ...unknown.map((name) => `Unknown field ${name} was ignored`)] };
}

const MAX_REMEMBERED_REPLIES = 200;

/**
 * Replies of each game's commands, by path and `opId`. Contains pending replies of running commands, and replies of
 * commands that replaced the city.
 */
const repliesByGame = new WeakMap<EmbeddedGame, Map<string, Promise<JsonObject>>>();

/** Key of a stored reply; empty without an `opId`. */
function keyOf(path: string, { opId }: Body): string {
  return typeof opId === "string" && opId !== "" ? `${path} ${opId}` : "";
}

/**
 * Stores the reply to a command. If the command is repeated with the same `opId`, it returns the stored reply and
 * changes nothing. Replies are saved with the city, so they survive a restart and `load-city`. Refusals and dry runs
 * are not stored.
 */
function remember<R>(replies: Map<string, R> | undefined, key: string, reply: R): void {
  if (!replies || key === "") return;
  replies.set(key, reply);
  const [oldest] = replies.keys();
  if (replies.size > MAX_REMEMBERED_REPLIES && oldest !== undefined) replies.delete(oldest);
}
