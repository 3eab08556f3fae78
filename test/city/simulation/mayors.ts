/** Scripted mayors that play a city through its commands and reads, for tests and the measure script. */

import { placeBuilding } from "../../../src/city/commands/buildings.js";
import { takeLoan } from "../../../src/city/commands/city.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import type { GroundPoint } from "../../../src/city/geometry.js";
import { RefusedError } from "../../../src/city/refusal.js";
import {
  type Coverage,
  findBuildingPrefab,
} from "../../../src/city/simulation/catalogue/building-prefabs.js";
import { AGE_LIMITS, ageInUnits } from "../../../src/city/simulation/fabric/citizens.js";
import { shownDemand } from "../../../src/city/simulation/life/demand.js";
import { missingServicesInPieces } from "../../../src/city/simulation/life/expectations.js";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import { CYCLES_PER_WEEK, FRAMES_PER_CYCLE } from "../../../src/city/simulation/state/calendar.js";
import type { Building } from "../../../src/city/simulation/state/entities.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { inOneGo } from "../../../src/city/steps.js";
import { ORIGIN, Town, WORKS } from "./mayor-town.js";
import { advance, newCity, road, starterTown } from "./towns.js";

export interface Mayor {
  /** Starts a new city. */
  readonly found: (seed: number) => World;
  /** Issues the commands of one week. */
  readonly govern: (city: World, week: number) => void;
}

/** The building that provides each service. */
const PROVIDERS: Readonly<Record<Coverage, string>> = {
  garbage: "Landfill Site",
  health: "Medical Clinic",
  death: "Cemetery",
  police: "Police Station",
  fire: "Fire House",
  elementary: "Elementary School",
  highSchool: "High School",
  university: "University",
  leisure: "Regular Park",
};
/** Larger towns build a solar plant instead of a wind turbine if they have this much money. */
const LARGE_TOWN_CITIZENS = 8_000;
const SOLAR_MONEY = 100_000;

/** A service gets another building if its load exceeds this multiple of its capacity. */
const BUSY = 1.3;
/** The town zones no homes while it cannot afford a service whose lack costs more happiness points than this. */
const TOLERABLE_POINTS = 1;

const towns = new WeakMap<World, Town>();

/** Money that weekly commands never spend, because running costs and loans exceed the taxes of a fast-growing town. */
const RESERVE = 4_000;
const RESERVE_WITH_LOANS = 30_000;

export function foundTown(seed: number, reserve = RESERVE): World {
  const city = newCity("highway", seed);
  city.unlimitedMoney = false;
  const town = new Town(city, reserve);
  towns.set(city, town);
  town.found();
  for (const prefab of ["Wind Turbine", "Wind Turbine", "Water Tower", "Inland Water Treatment Plant 01"]) {
    town.build(prefab, ORIGIN);
  }
  return city;
}

/**
 * Adds plants before a utility runs short. Power has the largest reserve, because electric heating needs 50 % more
 * power in winter. Returns false if money is short.
 */
export function keepUtilities(town: Town): boolean {
  const { city } = town;
  const isRich = city.citizens.size > LARGE_TOWN_CITIZENS && town.funds > SOLAR_MONEY;
  const power = isRich ? "Solar Power Plant" : "Advanced Wind Turbine";
  const plants = [
    ["power", power, 0.6],
    ["water", "Water Tower", 0.8],
    ["sewage", "Inland Water Treatment Plant 01", 0.8],
  ] as const;
  let isWell = true;
  for (const [carries, plant, share] of plants) {
    const networks = city.utilities.filter((network) => network.carries === carries);
    const sum = (figure: "supply" | "demand") => networks.reduce((all, network) => all + network[figure], 0);
    if (sum("demand") > share * sum("supply") && !town.build(plant, WORKS)) isWell = false;
  }
  return isWell;
}

/**
 * Zones by demand, up to a number of unfinished blocks that grows with the town.
 * @param getsHomes false while the town saves for a service, to which new shops and workplaces contribute taxes
 */
export function zoneByBars(town: Town, getsHomes: boolean): void {
  const { city } = town;
  const { residential, commercial, workplace } = shownDemand(city);
  const most = 1 + Math.floor(city.citizens.size / 800);
  const grow = (bar: number, zone: string, near: GroundPoint, share: number) => {
    for (
      let open = town.unfinished(zone);
      bar > 15 && open < Math.ceil(most * share) && town.funds > 2_000;
      open++
    ) {
      town.zone(zone, near);
    }
  };
  const isVillage = city.citizens.size < 300;
  if (getsHomes) grow(residential, isVillage ? "ResidentialLow" : "ResidentialHigh", ORIGIN, 2);
  grow(commercial, isVillage ? "CommercialLow" : "CommercialHigh", ORIGIN, 0.5);
  const isOffice = town.blocksOf("Office").length < town.blocksOf("Industrial").length - 4;
  grow(workplace, isOffice ? "Office" : "Industrial", isOffice ? ORIGIN : WORKS, 1);
}

/**
 * Builds the services that many households lack, those with the most happiness per price first. Then builds further
 * buildings for overloaded services. Stops at a building that the town cannot afford yet.
 * @param most maximum number of new buildings
 * @returns false if the town cannot afford a service whose lack costs more than TOLERABLE_POINTS
 */
function serveWishes(town: Town, most: number): boolean {
  const { city } = town;
  const wished = inOneGo(missingServicesInPieces(city))
    .filter(({ householdsWithout }) => householdsWithout > 0.1 * city.households.size)
    .map(({ service, place, pointsLost }) => ({ prefab: PROVIDERS[service as Coverage], place, pointsLost }))
    .sort((a, b) => pointsPerMoney(b) - pointsPerMoney(a));
  const needs = [...wished, ...busyServices(city)]
    .filter(({ prefab }, i, all) => all.findIndex((other) => other.prefab === prefab) === i)
    .slice(0, most);
  const tooDear = needs.find(({ prefab, place }) => !town.build(prefab, place));
  return !tooDear || tooDear.pointsLost <= TOLERABLE_POINTS;
}

/** Happiness lost to a missing service, per unit of its building's price. */
function pointsPerMoney({ prefab, pointsLost }: { prefab: string; pointsLost: number }): number {
  return pointsLost / (findBuildingPrefab(prefab)?.cost as number);
}

function busyServices(world: World) {
  return Object.entries(PROVIDERS).flatMap(([kind, prefab]) => {
    const providers = world.providers.get(kind as Coverage)?.items ?? [];
    const sum = (figure: (provider: Building) => number) =>
      providers.reduce((all, provider) => all + figure(provider), 0);
    const capacity = sum(({ prefab }) => prefab.civic?.coverage?.capacity ?? 0);
    const [busiest] = [...providers].sort((a, b) => b.lastLoad - a.lastLoad);
    const isBusy = sum(({ lastLoad }) => lastLoad) > BUSY * capacity;
    return busiest && isBusy ? [{ prefab, place: busiest.position, pointsLost: 0 }] : [];
  });
}

function manage(city: World, serve: (town: Town) => boolean): void {
  const town = townOf(city);
  unlessUnaffordable(() => {
    if (keepUtilities(town)) zoneByBars(town, serve(town));
  });
}

export function townOf(city: World): Town {
  return towns.get(city) as Town;
}

/** Issues commands up to the first that the balance does not cover. */
export function unlessUnaffordable(issue: () => void): void {
  try {
    issue();
  } catch (error) {
    if (!(error instanceof RefusedError && error.message.includes("but the balance is"))) throw error;
  }
}

/** Buildings (prefab, x, z) that the second public script of the game's bridge adds to the starter town. */
const SCRIPTED_SERVICES = [
  ["711884134.Koban Police Box_Data", 300, 180],
  ["Fire House", 360, 180],
  ["Medical Clinic", 440, 180],
  ["Elementary School", 260, 180],
  ["Cemetery", 500, 200],
  ["Landfill Site", 540, 200],
  ["Landfill Site", 500, 260],
  ["Boiler Station", 360, 220],
] as const;

/** The neglectful mayor builds no services before this week. */
export const NEGLECT_WEEKS = 6 * 52;

export const MAYORS: Readonly<Record<string, Mayor>> = {
  starter: { found: starterTown, govern: () => undefined },
  bars: { found: foundTown, govern: (city) => manage(city, (town) => serveWishes(town, 3)) },
  oneByOne: {
    found: foundTown,
    govern: (city) => manage(city, (town) => serveWishes(town, 1)),
  },
  loans: {
    found: (seed) => {
      const city = foundTown(seed, RESERVE_WITH_LOANS);
      for (const { lender } of budgetOf(city).loanOffers)
        takeLoan.act(city, { dryRun: false, lender, repay: false });
      const { university: _tooLarge, ...first } = PROVIDERS;
      const town = towns.get(city) as Town;
      for (const provider of Object.values(first)) town.build(provider, ORIGIN);
      return city;
    },
    govern: (city) => manage(city, (town) => serveWishes(town, 3)),
  },
  scripts: {
    found: (seed) => {
      const city = starterTown(seed);
      buildNetwork.act(city, road(240, 180, 560, 180));
      buildNetwork.act(city, road(400, 160, 400, 180));
      buildNetwork.act(city, road(480, 80, 480, 220, "Water Pipe"));
      for (const [buildingPrefab, x, z] of SCRIPTED_SERVICES) {
        placeBuilding.act(city, {
          dryRun: false,
          buildingPrefab,
          position: { x, z },
          angleDegrees: 180,
          suggest: false,
          strict: false,
        });
      }
      return city;
    },
    govern: () => undefined,
  },
  neglectful: {
    found: foundTown,
    govern: (city, week) => manage(city, (town) => week < NEGLECT_WEEKS || serveWishes(town, 3)),
  },
};

/** Plays some years and calls `afterWeek` after each week. */
export function play(
  mayor: Mayor,
  seed: number,
  years: number,
  afterWeek: (city: World, week: number) => void,
): World {
  const city = mayor.found(seed);
  for (let week = 0; week < years * 52; week++) {
    mayor.govern(city, week);
    advance(city, CYCLES_PER_WEEK * FRAMES_PER_CYCLE);
    afterWeek(city, week + 1);
  }
  return city;
}

/** Summarizes a city's latest year. */
export function lastYear(city: World) {
  const weeks = city.statistics.samples.slice(-52);
  const now = weeks.at(-1);
  if (!now) throw new Error("no week has passed");
  const sum = (figure: "arrivals" | "departures" | "income" | "citizens" | "homes" | "households") =>
    weeks.reduce((all, week) => all + week[figure], 0);
  const meanCitizens = sum("citizens") / weeks.length;
  const accounts = city.ledger.history.slice(-52).map(({ amounts }) => amounts);
  const booked = (wanted: (line: string) => boolean) =>
    accounts.reduce(
      (all, amounts) =>
        all +
        Object.entries(amounts).reduce(
          (part, [line, cents = 0]) => part + (wanted(line) ? cents / 100 : 0),
          0,
        ),
      0,
    );
  const taxes = booked((line) => TAX_LINES.includes(line));
  const running = booked(
    (line) => ![...TAX_LINES, "Subsidies", "Milestones", "Grants", "Loans", "Construction"].includes(line),
  );
  const aid = booked((line) => line === "Subsidies");
  return {
    citizens: now.citizens,
    vacancyPercent: 100 * (1 - sum("households") / Math.max(sum("homes"), 1)),
    churnPercent: (100 * Math.max(sum("arrivals"), sum("departures"))) / meanCitizens,
    departuresPercent: (100 * sum("departures")) / meanCitizens,
    educatedPercent: educatedPercent(city),
    graduatesPercent: now.graduates,
    unemployed: now.unemployed,
    happiness: now.happiness,
    marginPercent: (100 * (taxes + aid - running)) / Math.max(taxes, 1),
    incomePerCitizen: taxes / weeks.length / meanCitizens,
    balance: now.balance,
    growables: now.growables,
    abandoned: now.abandoned,
  };
}

/** Percentage of adults who have finished any school. */
function educatedPercent(world: World): number {
  const adults = world.citizens
    .all()
    .filter((citizen) => ageInUnits(citizen, world.frame) >= AGE_LIMITS.adult);
  return (100 * adults.filter(({ education }) => education > 0).length) / Math.max(adults.length, 1);
}

const TAX_LINES = ["Residential", "Commercial", "Industrial", "Office"];
