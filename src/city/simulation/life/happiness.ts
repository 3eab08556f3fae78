/**
 * How content people are with where they live, 0 to 100, and what they do about it. Each cause counts by itself:
 * services (a village expects few, a town all), health, land value, taxes, crime, rubbish, idleness, the way to work,
 * shopping, and problems the more the longer they last. Households come and go one by one, the less and the more readily
 * the unhappier a place is, so that homes are filled to a share of about `1 / (1 + (38 / happiness)^5)`. The game shows
 * neither formula; weights are tuning.
 */
import type { ProblemName } from "../../terms.js";
import type { Coverage } from "../catalogue/building-prefabs.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { remotenessOf, type Surroundings } from "./services.js";

const BASE = 33;
/** What the quiet of a village makes up for. */
const VILLAGE_POINTS = 30;
/** Points for a service at its best, and as many lost where it is missing. */
const SERVICE_POINTS: readonly (readonly [Coverage, number])[] = [
  ["health", 3],
  ["police", 2],
  ["fire", 4],
  ["garbage", 2],
  ["death", 7],
  ["elementary", 7],
  ["highSchool", 4],
  ["university", 5],
  ["leisure", 8],
];
/** A town of this size expects half of all services. */
const HALF_EXPECTING_CITIZENS = 150;

/** Points lost to a problem once it has lasted long. */
const PROBLEM_POINTS: Partial<Record<ProblemName, number>> = {
  Electricity: 28,
  Water: 28,
  Sewage: 20,
  Heating: 10,
  RoadNotConnected: 20,
  Flood: 20,
  Fire: 8,
  Garbage: 6,
  Death: 8,
};
const FULL_WEIGHT_FRAMES = 4 * FRAMES_PER_WEEK;
const FRESH_WEIGHT = 0.25;

/** Points per percentage point of tax, and more beyond what is borne. */
const TAX_POINTS = 0.9;
const EXCESS_TAX_POINTS = 0.7;
const USUAL_TAX_RATE = 9;
const IDLE_POINTS = 5;

/** Points lost where the way to work takes half an hour or more, and where the shops have nothing. */
const COMMUTE_POINTS = 12;
const WANT_POINTS = 16;

/** Chances in percent per cycle at a happiness of 38. */
const TURNOVER_PERCENT = 0.2;
const INDIFFERENCE = 38;
/** Nobody packs faster: about five percent of a town in a week. */
const HIGHEST_LEAVING_PERCENT = 0.33;

/** The share, 0 to 1, of what cities offer that people of this one expect. */
export function expectation(world: World): number {
  return world.citizens.size / (world.citizens.size + HALF_EXPECTING_CITIZENS);
}

/**
 * @param excessTax percentage points of tax beyond what the owner bears
 * @param idle the share of the adults here who have no work, 0 to 1
 */
export function happinessOf(
  world: World,
  home: SimBuilding,
  { quality }: Surroundings,
  excessTax: number,
  idle: number,
): number {
  const { subService, level } = home.prefab;
  let services = 0;
  for (const [kind, points] of SERVICE_POINTS) services += points * (2 * (quality.get(kind) ?? 0) - 1);
  const tax =
    TAX_POINTS * (USUAL_TAX_RATE - world.taxes.rate(subService, level)) - EXCESS_TAX_POINTS * excessTax;
  const place = (home.health - 60) / 4 + (home.landValue - 20) / 6 - home.crime / 6 - home.garbage / 5;
  const expected = expectation(world);
  const happiness =
    BASE +
    VILLAGE_POINTS * (1 - expected) +
    expected * services +
    tax +
    place -
    IDLE_POINTS * idle -
    COMMUTE_POINTS * remotenessOf(world, home) -
    (WANT_POINTS * home.want) / 100 -
    troubleOf(home, world.frame);
  return Math.min(Math.max(happiness, 1), 100);
}

/** Points lost to the problems of a building. */
function troubleOf({ problems, problemSince }: SimBuilding, frame: number): number {
  let points = 0;
  problems.names.forEach((name, i) => {
    const age = (frame - (problemSince[i] as number)) / FULL_WEIGHT_FRAMES;
    points += (PROBLEM_POINTS[name] ?? 0) * Math.min(FRESH_WEIGHT + (1 - FRESH_WEIGHT) * age, 1);
  });
  return points;
}

/** In percent per cycle, for each household. */
export function leavingPercent(happiness: number): number {
  return Math.min(TURNOVER_PERCENT * (INDIFFERENCE / Math.max(happiness, 1)) ** 3, HIGHEST_LEAVING_PERCENT);
}

/** In percent per cycle, for each free home. */
export function arrivalPercent(happiness: number): number {
  return TURNOVER_PERCENT * (happiness / INDIFFERENCE) ** 2;
}
