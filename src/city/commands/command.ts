/** Defines commands of the bridge. A command is a POST endpoint that changes the city. */
import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import type { EmbeddedGame } from "../simulation/embedded-game.js";
import type { World } from "../simulation/state/world.js";
import type { JsonObject } from "../wire/answers.js";
import { type Body, parseFields, text, unknownFields } from "../wire/requests.js";
import { recordOperation } from "./journal.js";

/** A command as the HTTP routes use it, without the types of its fields and reply. */
export interface CommandRoute {
  readonly path: string;
  /** Summary of the command in the OpenAPI document. */
  readonly summary: string;
  /** Returns the overlay line of the command. `body` has not been validated. */
  readonly label: (body: Body) => string;
  readonly fields: z.ZodObject;
  /** Whether the command replaces the city. Later commands wait until it has ended. It needs no loaded city. */
  readonly replacesCity: boolean;
  /**
   * Runs the command once all earlier ones have ended.
   * @param world the city for which the command is meant; null if the command replaces the city
   * @throws RefusedError, HttpError 409
   */
  readonly send: (game: EmbeddedGame, world: World | null, body: Body) => Promise<JsonObject>;
}

interface Definition<Shape extends z.core.$ZodLooseShape>
  extends Pick<CommandRoute, "path" | "summary" | "label"> {
  readonly fields: z.ZodObject<Shape>;
}

interface Command<Shape extends z.core.$ZodLooseShape, Reply extends JsonObject> extends Definition<Shape> {
  /**
   * Checks everything, then changes the city, within one turn of the event loop. With `dryRun` it only checks. Returns
   * the reply without `ok` and `dryRun`.
   * @throws RefusedError; the city is then unchanged
   */
  readonly act: (world: World, fields: z.output<z.ZodObject<Shape>>) => Reply;
}

/** A command that runs for long, replaces the city or uses its saves. */
interface GameCommand<Shape extends z.core.$ZodLooseShape> extends Definition<Shape> {
  readonly replacesCity: boolean;
  /** Returns the reply without `ok` and `dryRun`. */
  readonly act: (game: EmbeddedGame, fields: z.output<z.ZodObject<Shape>>) => Promise<JsonObject>;
}

const OP_ID = {
  opId: text("").describe(
    "Id of the operation. Repeating a command with the same id returns the first reply and changes nothing.",
  ),
};

export function defineCommand<Shape extends z.core.$ZodLooseShape, Reply extends JsonObject>(
  command: Command<Shape, Reply>,
) {
  const fields = command.fields.extend(OP_ID);
  const act: typeof command.act = (world, given) => {
    // A running save copies the city in pieces. The copy has to finish before the city changes.
    world.capture?.finish();
    return command.act(world, given);
  };
  const run = (world: World, body: Body): JsonObject => {
    const key = keyOf(command.path, body);
    const earlier = world.replies.get(key);
    if (earlier !== undefined) return earlier as JsonObject;
    const given = parseFields(command.fields, body);
    const { opId } = parseFields(z.object(OP_ID), body);
    const acted = recordOperation(world, opId, () => act(world, given));
    const reply = completed(acted, given, unknownFields(fields, body));
    if (reply.dryRun !== true) remember(world.replies, key, reply);
    return reply;
  };
  const send = (game: EmbeddedGame, world: World | null, body: Body) =>
    game.inOrder(async () => {
      while (world?.capture) await world.capture.done;
      return run(requireLoaded(game, world), body);
    });
  return { ...command, fields, replacesCity: false, act, run, send };
}

export function defineGameCommand<Shape extends z.core.$ZodLooseShape>(
  command: GameCommand<Shape>,
): CommandRoute {
  const fields = command.fields.extend(OP_ID);
  const run = async (game: EmbeddedGame, body: Body): Promise<JsonObject> => {
    const given = parseFields(command.fields, body);
    return completed(await command.act(game, given), given, unknownFields(fields, body));
  };
  const runOnce = async (game: EmbeddedGame, body: Body): Promise<JsonObject> => {
    const { world } = game;
    const key = keyOf(command.path, body);
    const earlier = game.replies.get(key) ?? world?.replies.get(key);
    if (earlier !== undefined) return earlier as JsonObject | Promise<JsonObject>;
    const running = run(game, body);
    remember(game.replies, key, running);
    try {
      const reply = await running;
      remember((command.replacesCity ? game.world : world)?.replies, key, reply);
      if (!command.replacesCity) game.replies.delete(key);
      return reply;
    } catch (error) {
      game.replies.delete(key);
      throw error;
    }
  };
  const send: CommandRoute["send"] = async (game, world, body) => {
    if (command.replacesCity) return game.inOrder(() => runOnce(game, body));
    // Other commands run while the city advances, so only the start is in order.
    const { reply } = await game.inOrder(() => {
      requireLoaded(game, world);
      return { reply: runOnce(game, body) };
    });
    return reply;
  };
  return { ...command, fields, send };
}

/** @throws HttpError 409 if no city is loaded */
export function requireCity({ world }: EmbeddedGame): World {
  if (!world) throw new HttpError(409, "No city is loaded.");
  return world;
}

/** @throws HttpError 409 unless this city is loaded */
function requireLoaded({ world }: EmbeddedGame, expected: World | null): World {
  if (world && world === expected) return world;
  throw new HttpError(409, "The city was replaced before this command ran, so the command changed nothing.");
}

/** Adds `ok`, `dryRun` and warnings about unknown fields to a reply. Leaves out an empty list of warnings. */
function completed(reply: JsonObject, given: Body, unknown: readonly string[]): JsonObject {
  const { warnings, ...others } = reply;
  const known = Array.isArray(warnings) ? warnings : [];
  const all = [...known, ...unknown.map((name) => `Unknown field ${name} was ignored`)];
  const own = known.length > 0 ? reply : others;
  return { ok: true, dryRun: given.dryRun === true, ...own, ...(all.length > 0 ? { warnings: all } : {}) };
}

const MAX_REMEMBERED_REPLIES = 200;

/** Key of a stored reply; empty without an `opId`. @throws RefusedError unless `opId` is text */
function keyOf(path: string, body: Body): string {
  const { opId } = parseFields(z.object(OP_ID), body);
  return opId === "" ? "" : `${path} ${opId}`;
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
