/** Scripted mayors, who play a city through its commands and reads. The measure script and the tests share them. */
import { buildNetwork } from "../../../src/city/commands/build-network.js";
import { placeBuilding } from "../../../src/city/commands/place-building.js";
import { setZone } from "../../../src/city/commands/set-zone.js";
import { takeLoan } from "../../../src/city/commands/take-loan.js";
import { squareAround } from "../../../src/city/geometry.js";
import { CommandRefusedError } from "../../../src/city/refusal.js";
import type { Coverage } from "../../../src/city/simulation/catalogue/building-prefabs.js";
import { findBuildingPrefab } from "../../../src/city/simulation/catalogue/building-prefabs.js";
import { AGE, ageOf } from "../../../src/city/simulation/fabric/citizens.js";
import type { SimulatedCity } from "../../../src/city/simulation/simulated-city.js";
import { CYCLES_PER_WEEK, FRAMES_PER_CYCLE } from "../../../src/city/simulation/state/calendar.js";
import type { GroundPoint } from "../../../src/city/terms.js";
import { advance, connectToHighway, newCity, road, starterTown } from "./towns.js";

export interface Mayor {
  /** Begins the city. */
  readonly found: (seed: number) => SimulatedCity;
  /** Called once a week. */
  readonly govern: (city: SimulatedCity, week: number) => void;
}

const BLOCK_METERS = 80;
/** The corner of the town nearest to the highway. */
const ORIGIN = { x: 400, z: 300 };
const WORKS = { x: -200, z: 260 };
/** Weekly commands leave at least this much money. */
const RESERVE = 4_000;

interface Block {
  readonly column: number;
  readonly row: number;
  readonly center: GroundPoint;
  /** A zone, or `civic`. */
  use: string;
  readonly freeQuarters: GroundPoint[];
}

/** A grid of blocks, extended north and west of the highway. Every block has streets, a pipe and a power line. */
class Town {
  readonly #blocks = new Map<string, Block>();
  readonly #built = new Set<string>();

  constructor(readonly city: SimulatedCity) {}

  get funds(): number {
    return this.city.budget.balance - RESERVE;
  }

  /** Joins the highway. */
  found(): void {
    connectToHighway(this.city, ORIGIN.x, ORIGIN.z);
    this.#open(0, 0, "civic");
  }

  blocksOf(use: string): Block[] {
    return [...this.#blocks.values()].filter((block) => block.use === use);
  }

  /** Opens the free block nearest to a place and zones it. */
  zone(zone: string, near: GroundPoint): void {
    const { column, row } = this.#nearestFree(near);
    const { center } = this.#open(column, row, zone);
    setZone.act(this.city, { dryRun: false, preserveOccupied: false, zone, center, radius: 40 });
  }

  /** Blocks of a zone on which something may still grow. */
  unfinished(zone: string): number {
    return this.blocksOf(zone).filter(({ center }) => {
      const ids = this.city.world.buildings.near(squareAround(center, BLOCK_METERS / 2 - 8));
      const cells = ids
        .filter(({ prefab, position }) => {
          return (
            prefab.growable && Math.max(Math.abs(position.x - center.x), Math.abs(position.z - center.z)) < 36
          );
        })
        .reduce((sum, { prefab }) => sum + prefab.width * prefab.length, 0);
      return cells < 40;
    }).length;
  }

  /** Builds a service near a place if there is money for it. */
  build(prefabName: string, near: GroundPoint): boolean {
    const prefab = findBuildingPrefab(prefabName);
    if (!prefab || prefab.cost + 2_000 > this.funds) return false;
    const isSmall = Math.max(prefab.width, prefab.length) <= 4;
    const place = prefab.civic?.pollution ? WORKS : near;
    let block = isSmall ? this.#civicWithRoom(place) : undefined;
    if (!block) {
      const { column, row } = this.#nearestFree(place);
      block = this.#open(column, row, "civic");
    }
    const position = isSmall ? (block.freeQuarters.pop() as GroundPoint) : block.center;
    if (!isSmall) block.freeQuarters.length = 0;
    placeBuilding.act(this.city, {
      dryRun: false,
      buildingPrefab: prefabName,
      position,
      angleDegrees: 0,
      suggest: false,
      strict: false,
    });
    return true;
  }

  #civicWithRoom(near: GroundPoint): Block | undefined {
    return this.blocksOf("civic")
      .filter(({ freeQuarters, center }) => freeQuarters.length > 0 && metersBetween(center, near) < 400)
      .sort((a, b) => metersBetween(a.center, near) - metersBetween(b.center, near))[0];
  }

  /** Nearest free block beside an existing one. */
  #nearestFree(near: GroundPoint): { column: number; row: number } {
    let best = { column: 0, row: 0 };
    let least = Number.POSITIVE_INFINITY;
    for (const { column, row } of this.#blocks.values()) {
      for (const [dx, dz] of [
        [1, 0],
        [0, 1],
      ] as const) {
        const free = { column: column + dx, row: row + dz };
        if (this.#blocks.has(`${free.column} ${free.row}`)) continue;
        const center = centerOf(free.column, free.row);
        const meters = metersBetween(center, near) + 0.3 * metersBetween(center, ORIGIN);
        if (meters >= least) continue;
        least = meters;
        best = free;
      }
    }
    return best;
  }

  #open(column: number, row: number, use: string): Block {
    const center = centerOf(column, row);
    const freeQuarters = [
      [-16, -16],
      [16, -16],
      [-16, 16],
      [16, 16],
    ].map(([dx = 0, dz = 0]) => ({ x: center.x + dx, z: center.z + dz }));
    const block = { column, row, center, use, freeQuarters };
    this.#blocks.set(`${column} ${row}`, block);
    const near = [column, row, column + 1, row] as const;
    const right = [column, row, column, row + 1] as const;
    for (const prefab of ["Basic Road", "Water Pipe", "Power Line"]) {
      for (const edge of [near, right]) this.#lay(prefab, ...edge);
    }
    this.#lay("Basic Road", column + 1, row, column + 1, row + 1);
    this.#lay("Basic Road", column, row + 1, column + 1, row + 1);
    return block;
  }

  #lay(prefab: string, column: number, row: number, toColumn: number, toRow: number): void {
    const key = `${prefab} ${column} ${row} ${toColumn} ${toRow}`;
    if (this.#built.has(key)) return;
    this.#built.add(key);
    const [from, to] = [cornerOf(column, row), cornerOf(toColumn, toRow)];
    buildNetwork.act(this.city, road(from.x, from.z, to.x, to.z, prefab));
  }
}

function cornerOf(column: number, row: number): GroundPoint {
  return { x: ORIGIN.x - BLOCK_METERS * column, z: ORIGIN.z - BLOCK_METERS * row };
}

function centerOf(column: number, row: number): GroundPoint {
  return cornerOf(column + 0.5, row + 0.5);
}

function metersBetween(a: GroundPoint, b: GroundPoint): number {
  return Math.hypot(a.x - b.x, a.z - b.z);
}

/** Building for each missing service. */
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
/** Number of citizens from which oil plants are built. */
const LARGE_TOWN_CITIZENS = 8_000;

const towns = new WeakMap<SimulatedCity, Town>();

function foundTown(seed: number): SimulatedCity {
  const city = newCity("highway", seed);
  city.world.unlimitedMoney = false;
  const town = new Town(city);
  towns.set(city, town);
  town.found();
  for (const prefab of ["Wind Turbine", "Wind Turbine", "Water Tower", "Inland Water Treatment Plant 01"]) {
    town.build(prefab, ORIGIN);
  }
  return city;
}

/** Builds a plant before a network runs short; electric heating asks half as much again in winter. Returns whether all networks suffice. */
function keepUtilities(town: Town): boolean {
  const { city } = town;
  const { citizenCount } = city;
  const isLarge = citizenCount > LARGE_TOWN_CITIZENS;
  const power = isLarge ? "Oil Power Plant" : citizenCount > 800 ? "Coal Power Plant" : "Wind Turbine";
  const plants = [
    ["power", power, 0.6],
    ["water", "Water Tower", 0.8],
    ["sewage", "Inland Water Treatment Plant 01", 0.8],
  ] as const;
  let isWell = true;
  for (const [carries, plant, share] of plants) {
    const networks = city.utilities().filter((network) => network.carries === carries);
    const sum = (figure: "supply" | "demand") => networks.reduce((all, network) => all + network[figure], 0);
    if (sum("demand") > share * sum("supply") && !town.build(plant, WORKS)) isWell = false;
  }
  return isWell;
}

/** Zones by demand, with a limit on unfinished blocks that depends on the town's size. */
function zoneByBars(town: Town): void {
  const { city } = town;
  const { residential, commercial, workplace } = city.demand;
  const most = 1 + Math.floor(city.citizenCount / 800);
  const grow = (bar: number, zone: string, near: GroundPoint, share: number) => {
    for (
      let open = town.unfinished(zone);
      bar > 15 && open < Math.ceil(most * share) && town.funds > 2_000;
      open++
    ) {
      town.zone(zone, near);
    }
  };
  const isVillage = city.citizenCount < 300;
  grow(residential, isVillage ? "ResidentialLow" : "ResidentialHigh", ORIGIN, 2);
  grow(commercial, isVillage ? "CommercialLow" : "CommercialHigh", ORIGIN, 0.5);
  const isOffice = town.blocksOf("Office").length < town.blocksOf("Industrial").length - 4;
  grow(workplace, isOffice ? "Office" : "Industrial", isOffice ? ORIGIN : WORKS, 1);
}

/** Builds the services that many households lack. @param most buildings a week. Returns whether the money sufficed. */
function serveWishes(town: Town, most: number): boolean {
  const { city } = town;
  const grave = city
    .wishes()
    .filter(({ householdsWithout }) => householdsWithout > 0.1 * city.world.households.size);
  return grave
    .slice(0, most)
    .every(({ service, place }) => town.build(PROVIDERS[service as Coverage], place));
}

function manage(city: SimulatedCity, serve: (town: Town) => boolean): void {
  const town = towns.get(city) as Town;
  try {
    if (keepUtilities(town) && serve(town)) zoneByBars(town);
  } catch (error) {
    if (!(error instanceof CommandRefusedError && error.code === "not-enough-money")) throw error;
  }
}

/** The mod's second script: a grid of pipes, utilities, services and heating over the starter town. */
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

const NEGLECT_WEEKS = 6 * 52;

export const MAYORS: Readonly<Record<string, Mayor>> = {
  starter: { found: starterTown, govern: () => undefined },
  bars: { found: foundTown, govern: (city) => manage(city, (town) => serveWishes(town, 3)) },
  oneByOne: { found: foundTown, govern: (city) => manage(city, (town) => serveWishes(town, 1)) },
  loans: {
    found: (seed) => {
      const city = foundTown(seed);
      for (const { lender } of city.budget.loanOffers)
        takeLoan.act(city, { dryRun: false, lender, repay: false });
      const town = towns.get(city) as Town;
      for (const provider of Object.values(PROVIDERS)) town.build(provider, ORIGIN);
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

/** Plays some years; calls back after each week. */
export function play(
  mayor: Mayor,
  seed: number,
  years: number,
  afterWeek: (city: SimulatedCity, week: number) => void,
): SimulatedCity {
  const city = mayor.found(seed);
  for (let week = 0; week < years * 52; week++) {
    mayor.govern(city, week);
    advance(city, CYCLES_PER_WEEK * FRAMES_PER_CYCLE);
    afterWeek(city, week + 1);
  }
  return city;
}

/** Figures of the latest year of a city. */
export function lastYear(city: SimulatedCity) {
  const weeks = city.statistics().slice(-52);
  const now = weeks.at(-1);
  if (!now) throw new Error("no week has passed");
  const sum = (figure: "arrivals" | "departures" | "income" | "citizens") =>
    weeks.reduce((all, week) => all + week[figure], 0);
  const meanCitizens = sum("citizens") / weeks.length;
  const accounts = city.world.ledger.history.slice(-52).map(({ amounts }) => amounts);
  const booked = (wanted: (line: string) => boolean) =>
    accounts.reduce(
      (all, amounts) =>
        all +
        Object.entries(amounts).reduce((part, [line, cents]) => part + (wanted(line) ? cents / 100 : 0), 0),
      0,
    );
  const taxes = booked((line) => TAX_LINES.includes(line));
  const running = booked(
    (line) => ![...TAX_LINES, "Milestones", "Grants", "Loans", "Construction"].includes(line),
  );
  return {
    citizens: now.citizens,
    vacancyPercent: (100 * (now.homes - now.households)) / Math.max(now.homes, 1),
    churnPercent: (100 * Math.max(sum("arrivals"), sum("departures"))) / meanCitizens,
    departuresPercent: (100 * sum("departures")) / meanCitizens,
    educatedPercent: educatedPercent(city),
    graduatesPercent: now.graduates,
    unemployed: now.unemployed,
    happiness: now.happiness,
    marginPercent: (100 * (taxes - running)) / Math.max(taxes, 1),
    incomePerCitizen: taxes / weeks.length / meanCitizens,
    balance: now.balance,
    growables: now.growables,
    abandoned: now.abandoned,
  };
}

/** Adults who went to school at all. */
function educatedPercent({ world }: SimulatedCity): number {
  const adults = world.citizens.all().filter((citizen) => ageOf(citizen, world.frame) >= AGE.adult);
  return (100 * adults.filter(({ education }) => education > 0).length) / Math.max(adults.length, 1);
}

const TAX_LINES = ["Residential", "Commercial", "Industrial", "Office"];
