/** Creates, upgrades and removes buildings; their capacities, flags and problems. */
import { footprintRadius, type GroundPoint, type Position, squareAround } from "../../geometry.js";
import { FIRST_PROBLEM_SET, FLAG, type ProblemName, SECOND_PROBLEM_SET, type Severity } from "../../terms.js";
import type { BuildingPrefab } from "../catalogue/building-prefabs.js";
import { type Building, NO_PROBLEMS } from "../state/entities.js";
import type { World } from "../state/world.js";
import { moveOut } from "./citizens.js";
import { isAtShore, updateAccess } from "./reach.js";
import { invalidateOccupiedCells, markOccupiedCells } from "./zone-blocks.js";

/** Flags of a building that is abandoned, collapsed or burned down. */
export const RUIN_FLAGS = FLAG.Abandoned | FLAG.Collapsed | FLAG.BurnedDown;

const MIN_HOMES_HUNDREDTHS = 100;
const MIN_JOBS_HUNDREDTHS = 200;

/** Creates a building. Growables start as building sites; other buildings work immediately. */
export function createBuilding(
  world: World,
  prefab: BuildingPrefab,
  point: GroundPoint,
  angleDegrees: number,
  lot: { readonly blockId: number; readonly mask: number } = { blockId: 0, mask: 0 },
): Building {
  const flooded = world.terrain.isWater(point.x, point.z) && !prefab.civic?.shore;
  const isDry = prefab.civic?.shore === true && !isAtShore(world.terrain, { position: point, prefab });
  const position = { x: point.x, y: world.terrain.surfaceHeight(point.x, point.z), z: point.z };
  const building: Building = Object.assign(newBuildingRecord(world.buildings.nextId(), prefab, position), {
    angleDegrees,
    flags: initialFlags(prefab, flooded) & (isDry ? ~FLAG.Active : -1),
    builtFrame: world.frame,
    declineFrame: world.frame,
    blockId: lot.blockId,
    lotMask: lot.mask,
    ...buildingCapacities(prefab, () => world.random.below(100)),
    fuel: prefab.civic?.burnsFuel ? 1 : 0,
  });
  world.putBuilding(building);
  world.buildIndex += 1;
  updateAccess(world, building);
  markOccupiedCells(world, squareAround(point, footprintRadius(building)), building);
  return building;
}

/** Removes a building. Its residents leave the city; its workers lose their jobs. */
export function removeBuilding(world: World, building: Building): void {
  removeOccupants(world, building);
  world.dropBuilding(building);
  invalidateOccupiedCells(world, squareAround(building.position, footprintRadius(building)));
}

/**
 * Creates a building record. All records are created by this function, so that they have one shape in V8.
 * This makes the simulation several times as fast.
 */
export function newBuildingRecord(id: number, prefab: BuildingPrefab, position: Position): Building {
  return {
    id,
    prefab,
    position,
    angleDegrees: 0,
    flags: 0,
    problems: NO_PROBLEMS,
    problemSince: [],
    builtFrame: 0,
    declineFrame: 0,
    switchedOff: false,
    closedForDebt: false,
    supply: { power: true, water: true, sewage: true, heat: true },
    blockId: 0,
    lotMask: 0,
    homes: 0,
    jobs: 0,
    visitorPlaces: 0,
    householdIds: [],
    workerIds: [],
    visitors: 0,
    goods: 0,
    garbage: 0,
    bodies: 0,
    crime: 0,
    health: 60,
    happiness: 60,
    landValue: 10,
    progress: 0,
    taxUnrest: 0,
    burning: 0,
    load: 0,
    lastLoad: 0,
    waitSeconds: 0,
    commute: 0,
    want: 0,
    stored: 0,
    fuel: 0,
    roadId: 0,
    waterPipeIds: [],
    heatPipeIds: [],
  };
}

/** Removes residents and workers. */
export function removeOccupants(world: World, building: Building): void {
  for (const id of [...building.householdIds]) moveOut(world, world.households.at(id));
  for (const id of building.workerIds) world.citizens.at(id).workId = 0;
  building.workerIds.length = 0;
  world.updateVacancy(building);
  building.visitors = 0;
}

/** Upgrades a growable to the next level: same footprint, at least the same capacity. */
export function upgradeGrowable(world: World, building: Building, prefab: BuildingPrefab): void {
  const drawn = buildingCapacities(prefab, () => world.random.below(100));
  building.prefab = prefab;
  building.homes = Math.max(building.homes, drawn.homes);
  building.jobs = Math.max(building.jobs, drawn.jobs);
  world.updateVacancy(building);
  building.visitorPlaces = Math.max(building.visitorPlaces, drawn.visitorPlaces);
}

/** Whether a building is completed and not switched off, abandoned, collapsed or flooded. */
export function isActive(building: Building): boolean {
  return (building.flags & FLAG.Active) !== 0;
}

/** Whether a building is abandoned and still standing. */
export function isAbandoned({ flags }: Building): boolean {
  return (flags & FLAG.Abandoned) !== 0;
}

/** Whether a building is abandoned, collapsed or burned down. */
export function isRuin({ flags }: Building): boolean {
  return (flags & RUIN_FLAGS) !== 0;
}

export function isGrowable({ prefab }: Building): boolean {
  return prefab.growable !== null;
}

/** Whether a building has power, water and sewage disposal. */
export function isSupplied({ supply }: Building): boolean {
  return supply.power && supply.water && supply.sewage;
}

/** Whether a civic building provides its service: active, supplied, reachable, and its storage accepts more. */
export function isWorking(building: Building): boolean {
  const { power, water } = building.supply;
  const reachable = building.roadId !== 0 || building.prefab.civic?.roadless === true;
  return isActive(building) && power && water && reachable && acceptsMore(building);
}

/** Whether the building's storage is neither full nor being emptied. True without storage. */
function acceptsMore({ prefab, flags, stored }: Building): boolean {
  const storage = prefab.civic?.storage;
  return storage === undefined || (stored < storage && (flags & FLAG.Downgrading) === 0);
}

/** Name of the building's road; "our street" if there is none. */
export function streetNameOf(world: World, building: Building): string {
  return world.segments.get(building.roadId)?.name || "our street";
}

function initialFlags(prefab: BuildingPrefab, flooded: boolean): number {
  const base = FLAG.Created | (prefab.growable?.highDensity ? FLAG.HighDensity : 0);
  if (flooded) return base | FLAG.Flooded | (prefab.growable ? 0 : FLAG.Completed);
  return prefab.growable ? base : base | FLAG.Completed | FLAG.Active;
}

/**
 * Homes, jobs and visitor places of a new building. Growables: `max(minimum, cells * perCell + random 0 to
 * 99) / 100`, rounded down. Civic buildings have a fixed number of jobs.
 */
export function buildingCapacities(
  prefab: BuildingPrefab,
  draw: () => number,
): Pick<Building, "homes" | "jobs" | "visitorPlaces"> {
  const { growable, civic, level } = prefab;
  if (!growable) return { homes: 0, jobs: civic?.jobs ?? 0, visitorPlaces: 0 };
  const cells = prefab.width * prefab.length;
  const places = (perCell: readonly number[], floor: number) => {
    const k = perCell[level - 1];
    return k === undefined ? 0 : Math.floor(Math.max(floor, cells * k + draw()) / 100);
  };
  return {
    homes: places(growable.homes, MIN_HOMES_HUNDREDTHS),
    jobs: places(growable.jobs, MIN_JOBS_HUNDREDTHS),
    visitorPlaces: places(growable.visitors, MIN_JOBS_HUNDREDTHS),
  };
}

const ORDER = new Map<ProblemName, number>(
  [...FIRST_PROBLEM_SET, ...SECOND_PROBLEM_SET].map((name, index) => [name, index]),
);

/** A grave problem becomes major, and later fatal, after these shares of the `patience`. */
const MAJOR_AFTER = 1 / 4;
const FATAL_AFTER = 2 / 3;

/** Problems that become more severe with time. All others stay warnings. */
const GRAVE: ReadonlySet<ProblemName> = new Set<ProblemName>([
  "Electricity",
  "Water",
  "Sewage",
  "RoadNotConnected",
  "Garbage",
  "Death",
  "TaxesTooHigh",
  "NoWorkers",
  "NoCustomers",
  "NoGoods",
  "NoPlaceforGoods",
]);

/** Switches a building on or off. A building site, a ruin and a flooded building stay inactive. */
export function switchBuilding(building: Building, isOn: boolean, frame: number): void {
  const { flags } = building;
  const isUsable = (flags & FLAG.Completed) !== 0 && (flags & (RUIN_FLAGS | FLAG.Flooded)) === 0;
  building.switchedOff = !isOn;
  building.flags = isOn && isUsable ? flags | FLAG.Active : flags & ~FLAG.Active;
  setProblem(building, "TurnedOff", !isOn, frame);
}

/** Sets or clears one problem. A problem that is set already keeps its age. */
export function setProblem(building: Building, name: ProblemName, present: boolean, frame: number): void {
  const { names } = building.problems;
  const at = names.indexOf(name);
  if (present === at >= 0) return;
  const entries = names.map((other, i) => ({ name: other, since: building.problemSince[i] as number }));
  if (present) entries.push({ name, since: frame });
  else entries.splice(at, 1);
  entries.sort((a, b) => (ORDER.get(a.name) as number) - (ORDER.get(b.name) as number));
  building.problemSince = entries.map((entry) => entry.since);
  building.problems =
    entries.length === 0
      ? NO_PROBLEMS
      : { names: entries.map((entry) => entry.name), severity: building.problems.severity };
}

/** The grave problem that has lasted longest, with its age in frames; null if there is none. */
export function longestGraveProblem(
  building: Building,
  frame: number,
): { name: ProblemName; age: number } | null {
  let worst: { name: ProblemName; age: number } | null = null;
  building.problems.names.forEach((name, i) => {
    const age = frame - (building.problemSince[i] as number);
    if (GRAVE.has(name) && (worst === null || age > worst.age)) worst = { name, age };
  });
  return worst;
}

/**
 * Sets the severity of a building's problems by the age of its oldest grave problem.
 * @param patience frames until the building is abandoned
 */
export function updateSeverity(building: Building, frame: number, patience: number): void {
  if (building.problems.names.length === 0) return;
  const age = (longestGraveProblem(building, frame)?.age ?? 0) / patience;
  const severity: Severity = age >= FATAL_AFTER ? "fatal" : age >= MAJOR_AFTER ? "major" : "warning";
  if (severity !== building.problems.severity)
    building.problems = { names: building.problems.names, severity };
}

export function clearProblems(building: Building): void {
  building.problems = NO_PROBLEMS;
  building.problemSince = [];
}
