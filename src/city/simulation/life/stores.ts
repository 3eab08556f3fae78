/** Garbage in landfills, the dead in cemeteries, and fuel in power plants, brought from the map edge. */
import { FLAG } from "../../terms.js";
import type { Coverage } from "../catalogue/building-prefabs.js";
import { setProblem } from "../fabric/buildings.js";
import { CYCLES_PER_WEEK } from "../state/calendar.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { serviceAt } from "./services.js";

/** Points that each dead resident adds to a building's `bodies`. */
export const POINTS_PER_DEAD_RESIDENT = 30;
/** Weeks to empty a full landfill or cemetery. */
const WEEKS_TO_EMPTY = 26;
/**
 * A power plant can store fuel for FUEL_STORE_WEEKS weeks of operation. A plant at the map edge gets fuel for
 * FUEL_PER_WEEK weeks of operation every week.
 */
const FUEL_STORE_WEEKS = 4;
const FUEL_PER_WEEK = 3;
const HALF_FUEL_SECONDS = 1_800;

/** Adds a building's garbage or dead residents to the storage of the provider that serves the building. */
export function moveToProvider(world: World, from: Building, kind: Coverage, amount: number): void {
  if (amount === 0) return;
  const served = serviceAt(world, from.position, from.roadId, kind);
  if (served?.provider.prefab.civic?.storage !== undefined) served.provider.stored += amount;
}

/** Updates the storage and the fuel of a civic building for one cycle. */
export function updateStorageAndFuel(world: World, building: Building): void {
  const { civic } = building.prefab;
  if (civic?.storage !== undefined) emptyOrFill(world, building, civic.storage);
  if (civic?.burnsFuel && !building.switchedOff) burn(world, building);
}

/**
 * Updates a storage and its problems. While a storage is being emptied, its content goes by road to another
 * provider of the service or beyond the map edge.
 */
function emptyOrFill(world: World, building: Building, storage: number): void {
  const isEmptying = (building.flags & FLAG.Downgrading) !== 0;
  const kind = building.prefab.civic?.coverage?.kind as Coverage;
  const other = serviceAt(world, building.position, building.roadId, kind);
  const canLeave = other !== null || secondsFromEdge(world, building) < Number.POSITIVE_INFINITY;
  if (isEmptying && canLeave) {
    const moved = Math.min(storage / (WEEKS_TO_EMPTY * CYCLES_PER_WEEK), building.stored);
    building.stored -= moved;
    if (other?.provider.prefab.civic?.storage !== undefined) other.provider.stored += moved;
  }
  setProblem(building, "LandfillFull", building.stored >= storage, world.frame);
  setProblem(building, "Emptying", isEmptying && building.stored > 0, world.frame);
  setProblem(building, "EmptyingFinished", isEmptying && building.stored === 0, world.frame);
}

function burn(world: World, plant: Building): void {
  const seconds = secondsFromEdge(world, plant);
  const brought =
    seconds === Number.POSITIVE_INFINITY ? 0 : FUEL_PER_WEEK / (1 + seconds / HALF_FUEL_SECONDS);
  const fuel = plant.fuel + (brought - 1) / CYCLES_PER_WEEK;
  plant.fuel = Math.min(Math.max(fuel, 0), FUEL_STORE_WEEKS);
  setProblem(plant, "NoFuel", plant.fuel === 0, world.frame);
}

function secondsFromEdge(world: World, { roadId }: Building): number {
  return world.segments.get(roadId)?.traffic.edgeSeconds ?? Number.POSITIVE_INFINITY;
}
