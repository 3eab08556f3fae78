import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { MAX_FRAMES_PER_SECOND } from "../simulation/embedded-game.js";
import type { World } from "../simulation/state/world.js";
import { flag, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { operationsOf } from "./journal.js";

const LASTS_SECONDS = 60;

export const undo = defineCommand({
  path: "/commands/undo",
  summary:
    "Removes what a command has built or zoned, pays its cost back, and puts back what it has bulldozed, with residents, zones and ids where they are free: within 60 seconds of real time, if all of it still stands as it was built and nothing new stands in the place of what was bulldozed; buildings that have grown there since give way, and those torn down beside a bulldozed street come back empty. Refused otherwise.",
  label: () => "Undo",
  fields: z.object({
    dryRun: flag(false),
    undoes: text("").describe("`opId` of the command to undo. A command without one cannot be undone."),
  }),
  act: (world, { dryRun, undoes }) => {
    const { changes } = requireFresh(world, undoes);
    const hindrance = changes.map((change) => change.hindrance()).find((reason) => reason !== null);
    if (hindrance) throw new RefusedError(hindrance);
    const refund = changes.reduce((sum, { cost }) => sum + cost, 0);
    const warnings: string[] = [];
    if (!dryRun) {
      for (const { revert } of changes.toReversed()) revert(warnings);
      operationsOf(world).delete(undoes);
      world.ledger.book("Construction", -refund);
    }
    const message = `${changes.length} changes ${dryRun ? "would be" : "were"} undone; ${refund.toFixed(2)} ${dryRun ? "would be" : "was"} paid back.`;
    const balance = world.ledger.balanceCents / 100;
    return { message, undoes, changes: changes.length, refund, balance, warnings };
  },
});

/** @throws RefusedError if the command is unknown or too old */
function requireFresh(world: World, opId: string) {
  const operation = operationsOf(world).get(opId);
  if (!operation) throw new RefusedError(`No command with the opId "${opId}" can be undone`);
  const seconds = (performance.now() - operation.sentMs) / 1000;
  if (seconds > LASTS_SECONDS) {
    const message = `The command was sent ${seconds.toFixed(0)} s ago; a command can be undone for ${LASTS_SECONDS} s`;
    throw new RefusedError(message);
  }
  // Without this limit, `advance` could use a building for years before it is paid back.
  if (world.frame - operation.frame > LASTS_SECONDS * MAX_FRAMES_PER_SECOND) {
    throw new RefusedError("The city has been advanced since the command, so it cannot be undone");
  }
  return operation;
}
