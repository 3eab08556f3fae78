/**
 * Happiness of residents, 1 to 100. Happiness is a sum of independent causes, such as services, taxes and crime.
 * The game publishes no formula. The weights are tuned: a village is content with utilities alone, a town also
 * needs services.
 */
import type { ProblemName } from "../../terms.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { EXPECTATIONS, expectation } from "./expectations.js";
import { remotenessOf, type Surroundings } from "./services.js";

/** Points of happiness of every home before other causes count. */
const BASE = 54;
/** Share of a service's points that a home with the service gains, even if the town expects no such service. */
const SERVICE_BONUS = 0.5;

/** Points lost to a problem that has lasted FULL_WEIGHT_FRAMES or longer. */
const PROBLEM_POINTS: Partial<Record<ProblemName, number>> = {
  Electricity: 40,
  Water: 40,
  Sewage: 30,
  Heating: 10,
  RoadNotConnected: 30,
  Flood: 20,
  Fire: 8,
  Garbage: 6,
  Death: 8,
  TaxesTooHigh: 10,
};
const FULL_WEIGHT_FRAMES = 4 * FRAMES_PER_WEEK;
const FRESH_WEIGHT = 0.25;

/** Points gained or lost per percentage point of tax below or above USUAL_TAX_RATE. */
const TAX_POINTS = 2;
/** Further points lost per percentage point of tax above the tolerated rate. */
const EXCESS_TAX_POINTS = 1.2;
const USUAL_TAX_RATE = 9;
const IDLE_POINTS = 5;

/** Points lost for a commute of REMOTE_SECONDS (services.ts) or longer. */
const COMMUTE_POINTS = 12;
/** Points lost for the maximum unmet shopping need. */
const WANT_POINTS = 40;

/** Percentage of content households that leave per cycle. In a year, about nine percent leave. */
const SETTLED_LEAVING_PERCENT = 0.011;
/** Further percentage of households that leave per cycle at happiness 0: about five percent in a week. */
const UNHAPPY_LEAVING_PERCENT = 0.33;
/** A household with at least this happiness does not leave out of discontent. */
const CONTENT = 50;
/** Chance in percent per cycle that a household moves into a free home if happiness is CONTENT. */
const ARRIVAL_PERCENT = 0.8;
/** Nobody moves in at this happiness or below. */
const REPELLENT = 20;

/** Points of happiness by cause. Negative points lower the happiness. */
export type HappinessParts = Readonly<Record<string, number>>;

/**
 * Points of a home's happiness by cause. Their sum is not limited yet.
 * @param excessTax percentage points of tax above the tolerated rate
 * @param idle share of unemployed people of working age in the building, 0 to 1
 */
export function happinessParts(
  world: World,
  home: Building,
  { quality }: Pick<Surroundings, "quality">,
  excessTax: number,
  idle: number,
): HappinessParts {
  const { subService, level } = home.prefab;
  const parts: Record<string, number> = { base: BASE };
  for (const { kind, points } of EXPECTATIONS) {
    const served = quality.get(kind) ?? 0;
    parts[kind] = points * (SERVICE_BONUS * served - expectation(world, kind) * (1 - served));
  }
  parts.taxes =
    TAX_POINTS * (USUAL_TAX_RATE - world.taxes.rate(subService, level)) - EXCESS_TAX_POINTS * excessTax;
  parts.residentHealth = (home.health - 60) / 4;
  parts.landValue = (home.landValue - 20) / 6;
  parts.crime = -home.crime / 6;
  parts.rubbish = -home.garbage / 5;
  parts.unemployment = -IDLE_POINTS * idle;
  parts.commute = -COMMUTE_POINTS * remotenessOf(world, home);
  parts.shopping = (-WANT_POINTS * home.want) / 100;
  home.problems.names.forEach((name, i) => {
    const age = (world.frame - (home.problemSince[i] as number)) / FULL_WEIGHT_FRAMES;
    const weight = Math.min(FRESH_WEIGHT + (1 - FRESH_WEIGHT) * age, 1);
    const points = PROBLEM_POINTS[name] ?? 0;
    if (points > 0) parts[`problem${name}`] = -points * weight;
  });
  return parts;
}

/** Happiness: the sum of the parts, limited to 1 to 100. */
export function happinessOf(parts: HappinessParts): number {
  const sum = Object.values(parts).reduce((all, points) => all + points, 0);
  return Math.min(Math.max(sum, 1), 100);
}

/** Chance in percent per cycle that a household leaves. */
export function leavingPercent(happiness: number): number {
  const discontent = Math.max(CONTENT - happiness, 0) / CONTENT;
  return Math.min(
    SETTLED_LEAVING_PERCENT + UNHAPPY_LEAVING_PERCENT * discontent ** 3,
    UNHAPPY_LEAVING_PERCENT,
  );
}

/** Chance in percent per cycle that a household moves into a free home. */
export function arrivalPercent(happiness: number): number {
  return (ARRIVAL_PERCENT * Math.max(happiness - REPELLENT, 0)) / (CONTENT - REPELLENT);
}
