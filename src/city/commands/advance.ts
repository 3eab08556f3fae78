import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { advanceWorld } from "../simulation/advance.js";
import { FRAMES_PER_CYCLE, FRAMES_PER_DAY, FRAMES_PER_WEEK } from "../simulation/state/calendar.js";
import type { World } from "../simulation/state/world.js";
import { FIRST_PROBLEM_SET, SECOND_PROBLEM_SET } from "../terms.js";
import { CitySnapshot } from "../views/digest.js";
import { timestamp } from "../views/listing.js";
import { fieldText, number, optionalNumber, text } from "../wire/requests.js";
import { defineGameCommand, requireCity } from "./command.js";
import { requireWithin } from "./requirements.js";

/** Ten years, the period for which statistics are kept. */
const MAX_WEEKS = 522;
const MAX_SECONDS = 600;
const PROBLEMS: readonly string[] = [...FIRST_PROBLEM_SET, ...SECOND_PROBLEM_SET];

const UNTIL = z.object(
  {
    citizens: optionalNumber.describe(
      "Stops when the number of citizens reaches this value, from below or above.",
    ),
    balance: optionalNumber,
    problem: text("").describe(
      "Stops when this problem appears at a new place: a problem name of GET /state/problems, or `any`.",
    ),
  },
  "must be an object with citizens, balance or problem",
);

export const advance = defineGameCommand({
  path: "/commands/advance",
  summary:
    "Runs the city as fast as the processor allows and reports what changed. Other requests are answered meanwhile. Time advances even if the city is paused, so a program can control it.",
  label: ({ weeks, days }) =>
    fieldText(weeks, "") !== ""
      ? `Advance ${fieldText(weeks, "")} weeks`
      : `Advance ${fieldText(days, "some")} days`,
  replacesCity: false,
  fields: z.object({
    weeks: optionalNumber.describe("Game time, at most ten years; alternatives are `days` and `until`."),
    days: optionalNumber,
    until: UNTIL.nullable().default(null).describe("Goals. Stops at the first one reached."),
    maxSeconds: number(30).describe("Real time, 0.1 to 600 s."),
  }),
  act: async (game, { weeks, days, until, maxSeconds }) => {
    const world = requireCity(game);
    const maxFrames = framesOf(weeks, days, until !== null);
    requireWithin("maxSeconds", maxSeconds, 0.1, MAX_SECONDS);
    if (world.isAdvancing) throw new RefusedError("Another advance is running; wait for its reply");
    const start = new CitySnapshot(world);
    const [startFrame, startMs] = [world.frame, performance.now()];
    const goals = until === null ? [] : goalsOf(world, start, until);
    let reached = "";
    const isReached = () => {
      reached = goals.find(({ holds }) => holds())?.name ?? "";
      return reached !== "";
    };
    const isStopped = () => game.world !== world || world.isLeaving;
    const outcome = await advanceWorld(world, { maxFrames, maxSeconds, isReached, isStopped });
    const frames = world.frame - startFrame;
    const spent = { frames, weeks: frames / FRAMES_PER_WEEK, seconds: (performance.now() - startMs) / 1000 };
    const ended =
      outcome === "reached" ? reached : outcome === "frames" ? (weeks !== null ? "weeks" : "days") : outcome;
    return {
      message: `The city advanced by ${spent.weeks.toFixed(2)} weeks and stopped at ${ended}.`,
      stoppedBy: ended,
      ...spent,
      frame: world.frame,
      gameTime: timestamp(world.clock.gameTimeMs),
      ...start.changesSince(),
    };
  },
});

/** @throws RefusedError */
function framesOf(weeks: number | null, days: number | null, hasGoal: boolean): number {
  if (weeks !== null && days !== null) {
    throw new RefusedError(`weeks (${weeks}) and days (${days}) cannot both be set`);
  }
  if (weeks !== null) {
    requireWithin("weeks", weeks, 1 / FRAMES_PER_WEEK, MAX_WEEKS);
    return Math.round(weeks * FRAMES_PER_WEEK);
  }
  if (days !== null) {
    requireWithin("days", days, 1 / FRAMES_PER_DAY, 7 * MAX_WEEKS);
    return Math.ceil(days * FRAMES_PER_DAY);
  }
  if (hasGoal) return MAX_WEEKS * FRAMES_PER_WEEK;
  throw new RefusedError("weeks, days or until is missing; set one of them");
}

/** @throws RefusedError for an unknown problem */
function goalsOf(world: World, start: CitySnapshot, { citizens, balance, problem }: z.output<typeof UNTIL>) {
  const goals: { readonly name: string; readonly holds: () => boolean }[] = [];
  const add = (name: string, target: number | null, figure: () => number) => {
    if (target === null) return;
    const isBelow = figure() < target;
    goals.push({ name, holds: () => (isBelow ? figure() >= target : figure() <= target) });
  };
  add("citizens", citizens, () => world.citizens.size);
  add("balance", balance, () => world.ledger.balanceCents / 100);
  if (problem !== "") {
    if (problem !== "any" && !PROBLEMS.includes(problem)) {
      throw new RefusedError(`Unknown problem "${problem}"; it must be any or one of ${PROBLEMS.join(", ")}`);
    }
    // A cycle visits every building, so check the problems only at the end of a cycle.
    goals.push({
      name: "problem",
      holds: () => world.frame % FRAMES_PER_CYCLE === 0 && start.hasBegun(problem),
    });
  }
  if (goals.length > 0) return goals;
  throw new RefusedError("until must contain citizens, balance or problem");
}
