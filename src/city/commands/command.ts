/** Commands of the bridge: one POST endpoint, one change of the city. Each file of this folder is one command. */
import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import type { EmbeddedGame } from "../simulation/embedded-game.js";
import type { SimulatedCity } from "../simulation/simulated-city.js";
import type { JsonObject } from "../wire/answers.js";
import { type Body, parseFields, text, unknownFields } from "../wire/requests.js";

export interface Command<Shape extends z.core.$ZodLooseShape, Result> {
  readonly path: string;
  /** What it does, for clients. */
  readonly summary: string;
  /** The line that the overlay shows. The body is not validated yet. */
  readonly label: (body: Body) => string;
  readonly fields: z.ZodObject<Shape>;
  /**
   * Checks everything, then changes the city, within one turn of the event loop. With `dryRun` it only checks.
   * @throws CommandRefusedError; the city is then unchanged
   */
  readonly act: (city: SimulatedCity, fields: z.output<z.ZodObject<Shape>>) => Result;
  readonly reply: (result: Result, fields: z.output<z.ZodObject<Shape>>, city: SimulatedCity) => JsonObject;
}

/** A command as the routes see it. */
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
    "A repeat with the same id returns the first reply and changes nothing; empty for none.",
  ),
};

export function defineCommand<Shape extends z.core.$ZodLooseShape, Result>(
  command: Command<Shape, Result>,
): Omit<Command<Shape, Result>, "fields"> & CommandRoute {
  const fields = command.fields.extend(OP_ID);
  const act: typeof command.act = (city, given) => {
    // A save copies the city piece by piece; it takes the rest before the city changes.
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
      return oncePerId(city, command.path, body, () => run(city, body));
    },
  };
}

/** A command on the game: it takes its time, or replaces the city. */
export interface GameCommandRoute extends Omit<CommandRoute, "run"> {
  /** Refused with 409 while no city is loaded. */
  readonly needsCity: boolean;
  /** @throws CommandRefusedError, FieldError, HttpError 409 */
  readonly run: (game: EmbeddedGame, body: Body) => Promise<JsonObject>;
}

interface GameCommand<Shape extends z.core.$ZodLooseShape>
  extends Pick<GameCommandRoute, "path" | "summary" | "label" | "needsCity"> {
  readonly fields: z.ZodObject<Shape>;
  /** Returns the reply. */
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
      const scope = command.needsCity ? requireCity(game) : game;
      parseFields(z.object(OP_ID), body);
      return oncePerId(scope, command.path, body, () => run(game, body));
    },
  };
}

/** @throws HttpError 409 */
export function requireCity({ city }: EmbeddedGame): SimulatedCity {
  if (!city) throw new HttpError(409, "No city is loaded.");
  return city;
}

/** Fields that the command does not know are named in `warnings`. */
function withWarnings(fields: z.ZodObject, body: Body, reply: JsonObject): JsonObject {
  const unknown = unknownFields(fields, body);
  if (unknown.length === 0) return reply;
  const known = Array.isArray(reply.warnings) ? reply.warnings : [];
  return { ...reply, warnings: [...known, ...unknown.map((name) => `Unknown field ${name} was ignored`)] };
}

const MAX_REMEMBERED_REPLIES = 200;
type Reply = JsonObject | Promise<JsonObject>;
const repliesOf = new WeakMap<object, Map<string, Reply>>();

/**
 * Repeating an `opId` returns the first reply, also while the command still runs, and changes nothing. Refusals and dry
 * runs are not remembered.
 * @param scope what the ids belong to: a city, or the game
 */
function oncePerId<R extends Reply>(scope: object, path: string, { opId }: Body, run: () => R): R {
  if (typeof opId !== "string" || opId === "") return run();
  const replies = repliesOf.get(scope) ?? new Map<string, Reply>();
  repliesOf.set(scope, replies);
  const key = `${path} ${opId}`;
  const earlier = replies.get(key);
  if (earlier) return earlier as R;
  const reply = run();
  if (!(reply instanceof Promise) && reply.dryRun === true) return reply;
  replies.set(key, reply);
  if (reply instanceof Promise) reply.catch(() => replies.delete(key));
  const [oldest] = replies.keys();
  if (replies.size > MAX_REMEMBERED_REPLIES && oldest !== undefined) replies.delete(oldest);
  return reply;
}
