import { z } from "zod";
import { isObject } from "../../parameters.js";
import { RefusedError } from "../refusal.js";
import type { World } from "../simulation/state/world.js";
import { type JsonObject, toHttpError } from "../wire/answers.js";
import { type Body, fieldText, flag } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { buildRoad } from "./roads.js";
import { setZone } from "./zones.js";

const MAX_COMMANDS = 32;

const COMMANDS = new Map([
  ["build-road", buildRoad.run],
  ["set-zone", setZone.run],
]);

export const batch = defineCommand({
  path: "/commands/batch",
  summary: "Runs several commands in order. Nothing is rolled back; the status is 200 even if commands fail.",
  label: () => "Run batch commands",
  fields: z.object({
    dryRun: flag(true),
    stopOnError: flag(true),
    commands: z.array(z.unknown(), "must be an array").default([]),
  }),
  act: (world, { dryRun, stopOnError, commands }) => {
    if (commands.length === 0) throw new RefusedError("commands is missing or empty");
    if (commands.length > MAX_COMMANDS) {
      throw new RefusedError(`A batch takes at most ${MAX_COMMANDS} commands, not ${commands.length}`);
    }
    const results: JsonObject[] = [];
    let executed = 0;
    let failed = 0;
    for (const [index, command] of commands.entries()) {
      const item: Body = isObject(command) ? command : {};
      const type = fieldText(item.type, "");
      if (stopOnError && failed > 0) {
        results.push({ index, type, skipped: true });
        continue;
      }
      const result = runItem(world, type, { dryRun, ...item });
      if (result.ok === true) executed++;
      else failed++;
      results.push({ index, type, result });
    }
    const message = `${executed} of ${commands.length} commands succeeded.`;
    return { ok: failed === 0, message, results, executed, allOk: failed === 0 };
  },
});

function runItem(world: World, type: string, item: Body): JsonObject {
  try {
    const run = COMMANDS.get(type);
    if (!run) {
      const types = [...COMMANDS.keys()].join(" and ");
      throw new RefusedError(`Unsupported command type "${type}"; a batch takes ${types}`);
    }
    const { type: _type, ...fields } = item;
    return run(world, fields);
  } catch (error) {
    return { ok: false, error: toHttpError(error).message };
  }
}
