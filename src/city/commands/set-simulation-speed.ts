import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, shown } from "../wire/fields.js";

const FIELDS = z.object({ paused: flag(false), speed: number(1) });

/** POST /commands/set-simulation-speed: sets both; what is left out has its default. */
export const setSimulationSpeed: CommandRoute = {
  path: "/commands/set-simulation-speed",
  label: ({ paused, speed }) =>
    paused === true ? "Pause simulation" : `Set simulation speed ${shown(speed, "0")}`,
  run: (city, body) => {
    const clock = city.apply({ type: "set-simulation-speed", ...parseFields(FIELDS, body) });
    const { paused, selectedSpeed, finalSpeed } = clock;
    const message = paused ? "The simulation is paused." : `The simulation runs at speed ${selectedSpeed}.`;
    return { ok: true, dryRun: false, message, paused, selectedSpeed, finalSpeed };
  },
};
