/** Finds faults of a building site. By default, a fault is only a warning, as in the game's bridge. */
import {
  CELL_METERS,
  cornersOf,
  distance,
  type Footprint,
  footprintRadius,
  footprintsOverlap,
  middle,
  squareAround,
} from "../geometry.js";
import { RefusedError } from "../refusal.js";
import type { BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import {
  findAccessRoadId,
  hasPipe,
  isAtShore,
  nearestRoad,
  PIPE_REACH_METERS,
} from "../simulation/fabric/reach.js";
import { zoneAt } from "../simulation/fabric/zone-blocks.js";
import type { Building, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { civicPowerKw, hasPowerAt } from "../simulation/utilities/electricity.js";
import { civicWaterM3 } from "../simulation/utilities/pipes.js";
import { zoneOf } from "../terms.js";

/** Footprints may overlap by this much. */
export const FOOTPRINT_TOLERANCE_METERS = 1;
/** Sites with a larger height difference within the footprint get a fault. */
export const MAX_RISE_METERS = 10;
/** A site out of reach of all roads gets a fault that names the nearest road within this distance. */
const NEAREST_ROAD_METERS = 500;

export interface Site extends Footprint {
  readonly prefab: BuildingPrefab;
}

/** @param moved building that is being moved; its present ground counts as free */
export function siteFaults(world: World, site: Site, moved?: Building): string[] {
  if (site.prefab.helper) return [];
  return [...groundFaults(world, site, moved), ...connectionFaults(world, site)];
}

/** @throws RefusedError listing all faults if `strict` is set */
export function rejectFaultsIfStrict(faults: readonly string[], strict: boolean): void {
  if (strict && faults.length > 0) throw new RefusedError(faults.join("; "));
}

function* groundFaults(world: World, site: Site, moved: Building | undefined): Generator<string> {
  const ground = squareAround(site.position, footprintRadius(site));
  for (const other of world.buildings.near(ground)) {
    const isInTheWay = other !== moved && !other.prefab.helper && !other.prefab.growable;
    if (!isInTheWay || !footprintsOverlap(site, other, FOOTPRINT_TOLERANCE_METERS)) continue;
    yield `The building stands on building ${other.id}, a ${other.prefab.displayName}`;
  }
  for (const road of roadsUnder(world, site))
    yield `The building stands on segment ${road.id}, a ${road.prefab.displayName}`;
  const rise = heightRangeUnder(world, site);
  if (rise > MAX_RISE_METERS) yield `The ground under the building rises by ${rise.toFixed(1)} m`;
  const { x, z } = site.position;
  const { civic } = site.prefab;
  if (civic?.shore && !isAtShore(world.terrain, site))
    yield "No shore is near: the building works only beside water";
  if (!civic?.shore && world.terrain.isWater(x, z)) yield "The building stands in water";
  if (site.prefab.growable && zoneAt(world, site.position) !== zoneOf(site.prefab)) {
    yield `The building will be torn down soon, because the ground is not zoned ${zoneOf(site.prefab)}`;
  }
}

/** Roads at ground level that overlap the footprint. */
export function roadsUnder(world: World, site: Footprint): NetSegment[] {
  return world.segments
    .near(squareAround(site.position, footprintRadius(site) + 2 * CELL_METERS))
    .filter(({ prefab }) => prefab.carries === "traffic" && prefab.elevation === "ground")
    .filter((road) => footprintsOverlap(site, roadway(road), FOOTPRINT_TOLERANCE_METERS));
}

/** Height range of the ground or water at a footprint's corners and centre. */
export function heightRangeUnder(world: World, site: Footprint): number {
  const heights = [...cornersOf(site), site.position].map(({ x, z }) => world.terrain.surfaceHeight(x, z));
  return Math.max(...heights) - Math.min(...heights);
}

function* connectionFaults(world: World, site: Site): Generator<string> {
  const { civic, growable } = site.prefab;
  if (!civic?.roadless && findAccessRoadId(world, site) === 0) yield missingRoad(world, site);
  const needsWater =
    growable !== null || Boolean(civic?.waterM3 || civic?.sewageM3 || (civic && civicWaterM3(civic)));
  if (needsWater && !hasPipe(world, site.position, "water")) yield missingPipe("water");
  if (civic?.heatKw && !hasPipe(world, site.position, "heat")) yield missingPipe("heating");
  const needsPower = growable !== null || civicPowerKw(site.prefab) > 0;
  if (needsPower && !hasPowerAt(world, site))
    yield "No power is within reach: build a power line or a plant beside the building";
}

function missingRoad(world: World, { position }: Site): string {
  const nearest = nearestRoad(world, position, NEAREST_ROAD_METERS);
  const where = nearest
    ? `the nearest, segment ${nearest.id}, is ${nearest.meters.toFixed(0)} m away`
    : "none is near";
  return `No road is within reach: ${where}`;
}

function missingPipe(kind: string): string {
  return `No ${kind} pipe lies within ${PIPE_REACH_METERS} m`;
}

function roadway(road: NetSegment): Footprint {
  const { start, end, prefab } = road;
  return {
    position: middle(road),
    angleDegrees: (Math.atan2(end.z - start.z, end.x - start.x) * 180) / Math.PI,
    prefab: { width: distance(start, end) / CELL_METERS, length: prefab.widthMeters / CELL_METERS },
  };
}
