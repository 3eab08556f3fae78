import { z } from "zod";
import { fieldText, flag, optionalNumber } from "../wire/requests.js";
import { defineCommand } from "./command.js";

export const setSimulationSpeed = defineCommand({
  path: "/commands/set-simulation-speed",
  summary: "Sets pause and speed; a missing field has its default.",
  label: ({ paused, speed }) =>
    paused === true ? "Pause simulation" : `Set simulation speed ${fieldText(speed, "0")}`,
  fields: z.object({
    paused: flag(false),
    speed: optionalNumber.describe(
      "Truncated and clamped to 1..3. If null, the speed stays the same with `paused`, and becomes 1 otherwise.",
    ),
  }),
  act: (world, { paused, speed }) => {
    world.paused = paused;
    if (speed !== null || !paused)
      world.selectedSpeed = Math.min(Math.max(Math.trunc(speed ?? 1) || 1, 1), 3);
    const { selectedSpeed, finalSpeed } = world.clock;
    const message = paused ? "The simulation is paused." : `The simulation runs at speed ${selectedSpeed}.`;
    return { message, paused, selectedSpeed, finalSpeed };
  },
});
