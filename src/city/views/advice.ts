/** Advice: what lowers happiness in the city, and what will run short next. */

import { type Footprint, middle, type Position } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import type { BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { isRuin } from "../simulation/fabric/buildings.js";
import { AGE_LIMITS, ageInUnits } from "../simulation/fabric/citizens.js";
import { type Price, priceOf } from "../simulation/life/affordability.js";
import { detailsOf } from "../simulation/life/census.js";
import { BAILOUT_MONEY, isBailoutOffered, leastNeeded } from "../simulation/life/debt.js";
import { demandBarOf, shownDemand } from "../simulation/life/demand.js";
import { type MissingService, missingServicesInPieces } from "../simulation/life/expectations.js";
import { weeklySurplus } from "../simulation/life/finance.js";
import { stateAid } from "../simulation/life/taxes.js";
import { trafficOf } from "../simulation/life/traffic.js";
import type { Citizen } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { inSteps } from "../steps.js";
import type { JsonObject } from "../wire/answers.js";
import { firstSteps } from "./first-steps.js";
import { type LimitRule, paginate } from "./listing.js";
import {
  anotherPlant,
  changeTaxRate,
  commandOf,
  type Remedy,
  remediesFor,
  wasJustBuilt,
  widenRoad,
  zoneNear,
} from "./remedies.js";

const ADVICE_LIMIT: LimitRule = { fallback: 20, max: 100 };
/** Number of homes that are examined, spread evenly over the list of homes. */
const SAMPLED_HOMES = 300;
const LEAST_POINTS = 0.5;
/** Gravity added for each point of happiness that an average home loses. */
const GRAVITY_PER_POINT = 4;
/** Gravity of advice about a service that all homes lack, while no home has lost happiness. */
const WISH_GRAVITY = 10;
const NEARLY_USED = 0.85;
const NEARLY_FULL = 0.8;
const CROWDED_PERCENT = 80;
const HIGH_DEMAND = 50;

interface Advice {
  /** A cause of unhappiness, a problem or a utility; or money, demand or a road. */
  readonly topic: string;
  readonly message: string;
  /** Urgency, 0 to 100. */
  readonly gravity: number;
  readonly value: number;
  readonly unit: string;
  /** Place where the problem is worst. */
  readonly place: Position;
  /** Computes what would help. A function, because only the entries of a page need it. */
  readonly commands: () => readonly Remedy[];
}

/** GET /state/advice: entries by gravity, highest first. Computed in steps, between which the city may change. */
export const advice: ReadRoute = {
  path: "/state/advice",
  label: "Read advice",
  parameters: LIST_PARAMETERS,
  read: async ({ world, query }) => {
    const found = await inSteps(findAdvice(world));
    const { page, rows } = paginate(found, query, ADVICE_LIMIT);
    return { ...page, advice: await inSteps(writeRows(world, rows)) };
  },
};

function* findAdvice(world: World): Generator<void, Advice[]> {
  const missing = yield* missingServicesInPieces(world);
  const found = [...(yield* fromHomes(world, missing)), ...fromWishes(world, missing)];
  const finders = [
    fromStart,
    fromProblems,
    fromUtilities,
    fromMoney,
    fromServices,
    fromDemand,
    fromAges,
    fromRoads,
  ];
  for (const find of finders) {
    yield;
    found.push(...find(world));
  }
  return found.sort((a, b) => b.gravity - a.gravity);
}

/**
 * Adds the price of a building that would help. Leaves out its command if the city cannot pay for it, or just built it.
 * No two commands take the same ground, so that a client can send all of them.
 */
function* writeRows(world: World, found: readonly Advice[]): Generator<void, JsonObject[]> {
  const surplus = weeklySurplus(world);
  const rows: JsonObject[] = [];
  const taken: Footprint[] = [];
  for (const { place, commands: remedies, gravity, message, ...same } of found) {
    const commands: JsonObject[] = [];
    let priced: { message: string; price?: Price } = { message };
    for (const remedy of remedies()) {
      const price = "build" in remedy ? priceOf(world, remedy.build, surplus) : null;
      if (price && "build" in remedy)
        priced = { message: `${message} ${priceText(world, remedy.build, price)}`, price };
      if (price?.isAffordable !== false && !wasJustBuilt(world, remedy))
        commands.push(yield* commandOf(world, remedy, taken));
    }
    rows.push({ ...same, ...priced, gravity: Math.min(gravity, 100), position: place, commands });
    yield;
  }
  return rows;
}

function priceText(world: World, { displayName }: BuildingPrefab, price: Price): string {
  const { constructionCost, upkeepPerWeek, weeklySurplus: surplus, isAffordable } = price;
  const kept = surplus < 0 ? `loses ${-surplus.toFixed(0)}` : `keeps ${surplus.toFixed(0)}`;
  const ending = isAffordable ? "." : ", so it cannot pay for this yet.";
  const upkeep = `${upkeepPerWeek.toFixed(0)} a week${stateAid(world) > 0 ? " with the state's aid" : ""}`;
  return `${displayName}: ${constructionCost} to build and ${upkeep}; the city ${kept} a week${ending}`;
}

/** First steps, before all other advice. */
function* fromStart(world: World): Generator<Advice> {
  const steps = firstSteps(world);
  for (const [i, { topic, message, place, commands }] of steps.entries()) {
    const position = { ...place, y: world.terrain.surfaceHeight(place.x, place.z) };
    const own = { value: i + 1, unit: "step", place: position, commands: () => commands };
    yield { topic, message, gravity: 100 - i, ...own };
  }
}

/** Services that homes lack, including services that the town will expect soon. */
function fromWishes(world: World, missing: readonly MissingService[]): Advice[] {
  const households = world.households.size;
  return missing.map(({ service, fromCitizens, householdsWithout: value, pointsLost, place }) => {
    const gravity = (WISH_GRAVITY * value) / households + GRAVITY_PER_POINT * pointsLost;
    const effect =
      pointsLost > 0
        ? `costs ${pointsLost.toFixed(1)} points of happiness`
        : `will cost happiness from ${fromCitizens} citizens on`;
    const message = `${value} households lack ${service}, which ${effect}.`;
    const commands = () => remediesFor(world, service, place);
    return { topic: service, message, gravity, value, unit: "households", place, commands };
  });
}

/** Causes of lost happiness in homes. Building problems and missing services have separate entries. */
function* fromHomes(world: World, missing: readonly MissingService[]): Generator<void, Advice[]> {
  const wished: string[] = missing.map(({ service }) => service);
  const homes = world.buildings.all().filter((home) => home.householdIds.length > 0 && !isRuin(home));
  const step = Math.max(1, Math.ceil(homes.length / SAMPLED_HOMES));
  const sample = homes.filter((_, i) => i % step === 0);
  const causes = new Map<string, { lost: number; worst: number; place: Position }>();
  for (const home of sample) {
    yield;
    const { happinessParts } = detailsOf(world, home);
    for (const [cause, points] of Object.entries(happinessParts ?? {})) {
      if (points >= 0 || cause.startsWith("problem") || wished.includes(cause)) continue;
      const known = causes.get(cause) ?? { lost: 0, worst: 0, place: home.position };
      causes.set(cause, known);
      known.lost -= points;
      if (points < known.worst) Object.assign(known, { worst: points, place: home.position });
    }
  }
  return [...causes].flatMap(([cause, { lost, place }]): Advice[] => {
    const value = lost / sample.length;
    if (value < LEAST_POINTS) return [];
    const message = `Homes lose ${value.toFixed(1)} points of happiness on average because of ${cause}.`;
    const gravity = GRAVITY_PER_POINT * value;
    const commands = () => remediesFor(world, cause, place);
    return [{ topic: cause, message, gravity, value, unit: "points", place, commands }];
  });
}

function* fromProblems(world: World): Generator<Advice> {
  const places = new Map<string, Position[]>();
  const buildings = world.buildings.all();
  for (const { problems, position } of buildings) {
    for (const name of problems.names) {
      const known = places.get(name);
      if (known) known.push(position);
      else places.set(name, [position]);
    }
  }
  for (const [name, found] of places) {
    const [place] = found as [Position];
    const value = found.length;
    const message = `${value} buildings have the problem ${name}.`;
    const gravity = 10 + (90 * value) / buildings.length;
    const commands = () => remediesFor(world, name, place);
    yield { topic: name, message, gravity, value, unit: "buildings", place, commands };
  }
}

/** Advice about utility networks that are at or near capacity. */
function* fromUtilities(world: World): Generator<Advice> {
  for (const { carries, supply, demand, plantIds, unserved } of world.utilities) {
    const used = demand / supply;
    const plant = world.buildings.get(plantIds[0] ?? 0);
    if (!plant || used < NEARLY_USED) continue;
    const value = 100 * used;
    const without = unserved > 0 ? `, and ${unserved} buildings get none` : "";
    const message = `${value.toFixed(0)} % of the ${carries} is used${without}.`;
    const gravity = used > 1 ? 60 + Math.min(unserved, 40) : 20 + 100 * (used - NEARLY_USED);
    const place = plant.position;
    const commands = () => anotherPlant(carries, place);
    yield { topic: carries, message, gravity, value, unit: "%", place, commands };
  }
}

/** The advice to raise taxes ends at this rate, from which residents complain. */
const HIGHEST_ADVISED_RATE = 12;

/** A deficit that the money covers for ten years is no reason to act. */
const WORTH_SAYING_WEEKS = 520;

/** Advice about a deficit. Estimates how long the money lasts. */
function* fromMoney(world: World): Generator<Advice> {
  const net = weeklySurplus(world);
  const isOffered = isBailoutOffered(world);
  if (net >= 0 && !isOffered) return;
  const value = net >= 0 ? 0 : Math.max(world.ledger.balanceCents / 100 / -net, 0);
  if (value > WORTH_SAYING_WEEKS) return;
  const state = net >= 0 ? "The city is in debt" : `The city loses ${(-net).toFixed(0)} per week`;
  const offer = isOffered ? ` The state offers ${BAILOUT_MONEY}, once.` : "";
  const message = `${state}; its money lasts ${value.toFixed(0)} weeks.${offer}`;
  const gravity = value < 4 ? 80 : value < 26 ? 50 : 15;
  const place = { x: 0, y: world.terrain.surfaceHeight(0, 0), z: 0 };
  const commands = () => [...againstDeficit(world, value), ...(isOffered ? [ACCEPT_BAILOUT] : [])];
  yield { topic: "money", message, gravity, value, unit: "weeks", place, commands };
}

const ACCEPT_BAILOUT = { command: "accept-bailout", fields: {} };

function againstDeficit(world: World, weeks: number): Remedy[] {
  const isTaxed = world.taxes.rate("ResidentialLow", 1) < HIGHEST_ADVISED_RATE;
  const least = weeks < 26 ? leastNeeded(world) : undefined;
  const closing = { command: "set-building-active", fields: { id: least?.id ?? 0, active: false } };
  return [...(isTaxed ? [changeTaxRate(world, "", "ResidentialLow", 1)] : []), ...(least ? [closing] : [])];
}

/** Advice about overloaded services, and about landfills and cemeteries that are nearly full. */
function* fromServices(world: World): Generator<Advice> {
  for (const { prefab, id, lastLoad, stored, position: place } of world.buildings.all()) {
    const { coverage, storage } = prefab.civic ?? {};
    const load = coverage ? (100 * lastLoad) / coverage.capacity : 0;
    const filled = storage ? (100 * stored) / storage : 0;
    const isFull = filled >= 100 * NEARLY_FULL;
    if (load < 100 * NEARLY_USED && !isFull) continue;
    const value = isFull ? filled : load;
    const state = isFull
      ? `is ${value.toFixed(0)} % full`
      : `has a load of ${value.toFixed(0)} % of its capacity`;
    const message = `${prefab.displayName} ${id} ${state}.`;
    const empty = { command: "set-building-emptying", fields: { id } };
    const commands = () => [...(isFull ? [empty] : []), { build: prefab, near: place }];
    const topic = coverage?.kind ?? prefab.name;
    yield { topic, message, gravity: value / 4, value, unit: "%", place, commands };
  }
}

const ZONES_OF_BARS = [
  ["residential", "ResidentialLow"],
  ["commercial", "CommercialLow"],
  ["workplace", "Industrial"],
] as const;

/** Advice to zone land for which demand is high. */
function* fromDemand(world: World): Generator<Advice> {
  const growables = world.buildings.all().filter(({ prefab }) => prefab.growable);
  const [road] = world.segments.all();
  const near = growables[0]?.position ?? (road && middle(road));
  if (!near) return;
  const demand = shownDemand(world);
  for (const [bar, zone] of ZONES_OF_BARS) {
    const value = demand[bar];
    if (value < HIGH_DEMAND) continue;
    const message = `The ${bar} demand is ${value}.`;
    const newest = growables.findLast(({ prefab }) => demandBarOf(prefab.service) === bar);
    const place = newest?.position ?? near;
    const commands = () => zoneNear(world, place, zone);
    yield { topic: `${bar} demand`, message, gravity: value / 4, value, unit: "of 100", place, commands };
  }
}

const WEEKS_PER_YEAR = 52;
const NOTABLE_LOSS = 0.02;

/** Warns if more citizens will soon die of old age than were born in the last year. */
function* fromAges(world: World): Generator<Advice> {
  const home = world.buildings.all().find(({ householdIds }) => householdIds.length > 0);
  const isRetired = (citizen: Citizen) => ageInUnits(citizen, world.frame) >= AGE_LIMITS.retired;
  const retired = world.citizens.all().filter(isRetired).length;
  const births = world.statistics.samples.slice(-WEEKS_PER_YEAR).reduce((sum, week) => sum + week.births, 0);
  const value = retired - births;
  if (!home || value < NOTABLE_LOSS * world.citizens.size) return;
  const message = `${retired} citizens are old and will die within about a year; ${births} were born in the last year. New homes bring young families.`;
  const gravity = (100 * value) / world.citizens.size;
  const place = home.position;
  const commands = () => zoneNear(world, place, "ResidentialLow");
  yield { topic: "ageing", message, gravity, value, unit: "citizens", place, commands };
}

/** The three most crowded roads. */
function* fromRoads(world: World): Generator<Advice> {
  const crowded = world.segments.all().flatMap((segment) => {
    const load = trafficOf(segment);
    return load && load.densityPercent >= CROWDED_PERCENT
      ? [{ segment, load, used: load.volumePerHour / load.capacityPerHour }]
      : [];
  });
  for (const { segment, load } of crowded.sort((a, b) => b.used - a.used).slice(0, 3)) {
    const value = (100 * load.volumePerHour) / load.capacityPerHour;
    const message = `${segment.name || segment.prefab.displayName} carries ${value.toFixed(0)} % of its capacity at ${load.speedKmh.toFixed(0)} km/h.`;
    const place = middle(segment);
    const commands = () => widenRoad(world, segment.id);
    yield { topic: "traffic", message, gravity: value / 4, value, unit: "%", place, commands };
  }
}
