/**
 * Faults of a building site, and free places for a building near a point: along roads, or along the shore for
 * buildings that need water. By default, a fault is only a warning, as in the game's bridge.
 */
import {
  boxAround,
  CELL_METERS,
  cornersOf,
  distance,
  type Footprint,
  footprintRadius,
  footprintsOverlap,
  type GroundPoint,
  lengthOf,
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
import { MAP_HALF_METERS } from "../simulation/state/terrain.js";
import type { World } from "../simulation/state/world.js";
import { civicPowerKw, hasPowerAt } from "../simulation/utilities/electricity.js";
import { civicWaterM3 } from "../simulation/utilities/pipes.js";
import { inOneGo } from "../steps.js";
import { zoneOf } from "../terms.js";

/** Footprints may overlap by this much. */
const FOOTPRINT_TOLERANCE_METERS = 1;
/** Sites with a larger height difference within the footprint get a fault. */
const MAX_RISE_METERS = 10;
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

/** Buildings and roads on the ground of a site. */
export function obstaclesOn(world: World, site: Footprint): (Building | NetSegment)[] {
  return [...buildingsOn(world, site), ...roadsUnder(world, site)];
}

/** Buildings on the ground of a road, and segments of the same service that join the same places. */
export function obstaclesOf(world: World, road: NetSegment): (Building | NetSegment)[] {
  const { prefab, start, end } = road;
  const isOnGround = prefab.carries === "traffic" && prefab.elevation === "ground";
  const isAt = (a: GroundPoint, b: GroundPoint) => distance(a, b) < FOOTPRINT_TOLERANCE_METERS;
  const twins = world.segments
    .near(boxAround(road, 0))
    .filter((other) => other.prefab.service === prefab.service)
    .filter(
      (other) =>
        (isAt(other.start, start) && isAt(other.end, end)) ||
        (isAt(other.start, end) && isAt(other.end, start)),
    );
  return [...(isOnGround ? buildingsOn(world, roadway(road)) : []), ...twins];
}

/** Number of buildings on the ground of a planned road. */
export function countBuildingsUnder(
  world: World,
  road: Pick<NetSegment, "prefab" | "start" | "end">,
): number {
  const isOnGround = road.prefab.carries === "traffic" && road.prefab.elevation === "ground";
  return isOnGround ? buildingsOn(world, roadway(road)).length : 0;
}

function buildingsOn(world: World, site: Footprint): Building[] {
  return world.buildings
    .near(squareAround(site.position, footprintRadius(site)))
    .filter((other) => !other.prefab.helper && footprintsOverlap(site, other, FOOTPRINT_TOLERANCE_METERS));
}

/** Roads at ground level that overlap the footprint. */
function roadsUnder(world: World, site: Footprint): NetSegment[] {
  return world.segments
    .near(squareAround(site.position, footprintRadius(site) + 2 * CELL_METERS))
    .filter(({ prefab }) => prefab.carries === "traffic" && prefab.elevation === "ground")
    .filter((road) => footprintsOverlap(site, roadway(road), FOOTPRINT_TOLERANCE_METERS));
}

/** Height range of the ground or water at a footprint's corners and centre. */
function heightRangeUnder(world: World, site: Footprint): number {
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

function roadway(road: Pick<NetSegment, "prefab" | "start" | "end">): Footprint {
  const { start, end, prefab } = road;
  return {
    position: middle(road),
    angleDegrees: (Math.atan2(end.z - start.z, end.x - start.x) * 180) / Math.PI,
    prefab: { width: distance(start, end) / CELL_METERS, length: prefab.widthMeters / CELL_METERS },
  };
}

/** Radius of the search for free places. */
export const SUGGESTION_RADIUS_METERS = 600;
const SUGGESTIONS = 5;
const STEP_METERS = 8;
const SHORE_STEP_METERS = 16;
/** Ranking penalty for a place without a water pipe, as additional distance. */
const NO_PIPE_METERS = 200;
/** Ranking penalty for each home that the building would pollute, as additional distance. */
const SMOKED_HOME_METERS = 10;
const SMOKE_METERS = 120;

type PlaceSuggestion = {
  readonly position: { readonly x: number; readonly z: number };
  readonly angleDegrees: number;
  readonly distance: number;
  /** Road beside the place; 0 for a place at the shore. */
  readonly roadSegmentId: number;
  readonly waterPipe: boolean;
};

/** Suggested places, best first; empty if no place within the radius is free. */
export function suggestPlaces(world: World, prefab: BuildingPrefab, near: GroundPoint): PlaceSuggestion[] {
  return inOneGo(suggestPlacesInPieces(world, prefab, near, { count: SUGGESTIONS, taken: [] }));
}

/**
 * Like `suggestPlaces`, in steps. The city may change between two of them.
 * @param limits number of places, and sites that are not free though nothing stands there yet
 */
export function* suggestPlacesInPieces(
  world: World,
  prefab: BuildingPrefab,
  near: GroundPoint,
  { count, taken }: { readonly count: number; readonly taken: readonly Footprint[] },
): Generator<void, PlaceSuggestion[]> {
  const places = prefab.civic?.shore ? shoreSites(world, prefab, near) : roadSites(world, prefab, near);
  const rated: { readonly site: PlaceSuggestion; readonly costMeters: number }[] = [];
  for (const site of places) {
    rated.push({ site, costMeters: site.distance + drawbacks(world, prefab, site) });
    yield;
  }
  rated.sort((a, b) => a.costMeters - b.costMeters);
  const chosen: PlaceSuggestion[] = [];
  for (const { site } of rated) {
    if (chosen.length === count) break;
    const footprint = { ...site, prefab };
    const others = [...taken, ...chosen.map((other) => ({ ...other, prefab }))];
    const isApart = others.every((other) => !footprintsOverlap(footprint, other, 0));
    if (isApart && isFree(world, footprint, prefab)) chosen.push(site);
    yield;
  }
  return chosen;
}

function drawbacks(world: World, { civic }: BuildingPrefab, site: PlaceSuggestion): number {
  const isSmoky = (civic?.pollution ?? 0) > 0;
  const around = isSmoky ? world.buildings.near(squareAround(site.position, SMOKE_METERS)) : [];
  const homes = around.filter((building) => building.homes > 0).length;
  return SMOKED_HOME_METERS * homes + (site.waterPipe ? 0 : NO_PIPE_METERS);
}

function siteAt(
  world: World,
  near: GroundPoint,
  position: GroundPoint,
  angleDegrees: number,
  roadSegmentId = 0,
) {
  const waterPipe = hasPipe(world, position, "water");
  return { position, angleDegrees, distance: distance(position, near), roadSegmentId, waterPipe };
}

/** Candidate places on both sides of every road, one cell apart. */
function* roadSites(world: World, prefab: BuildingPrefab, near: GroundPoint): Generator<PlaceSuggestion> {
  const halfWidth = (prefab.width * CELL_METERS) / 2;
  const roads = world.segments
    .near(squareAround(near, SUGGESTION_RADIUS_METERS))
    .filter((road) => road.prefab.frontage && road.prefab.elevation === "ground");
  for (const road of roads) {
    const { start, end } = road;
    const length = lengthOf(road);
    const along = { x: (end.x - start.x) / length, z: (end.z - start.z) / length };
    const away = (road.prefab.widthMeters + prefab.length * CELL_METERS) / 2;
    // If the road is shorter than the building, place the building at the middle of the road.
    const first = Math.min(halfWidth, length / 2);
    for (let at = first; at <= length - first; at += STEP_METERS) {
      for (const side of [1, -1]) {
        const position = {
          x: start.x + along.x * at - along.z * away * side,
          z: start.z + along.z * at + along.x * away * side,
        };
        if (distance(position, near) > SUGGESTION_RADIUS_METERS) continue;
        const angleDegrees = (Math.atan2(along.z * side, along.x * side) * 180) / Math.PI;
        yield siteAt(world, near, position, angleDegrees, road.id);
      }
    }
  }
}

/** Candidate places on dry ground near water. */
function* shoreSites(world: World, prefab: BuildingPrefab, near: GroundPoint): Generator<PlaceSuggestion> {
  const steps = Math.floor(SUGGESTION_RADIUS_METERS / SHORE_STEP_METERS);
  for (let i = -steps; i <= steps; i++) {
    for (let j = -steps; j <= steps; j++) {
      const position = { x: near.x + i * SHORE_STEP_METERS, z: near.z + j * SHORE_STEP_METERS };
      if (
        distance(position, near) > SUGGESTION_RADIUS_METERS ||
        world.terrain.isWater(position.x, position.z)
      )
        continue;
      if (!isAtShore(world.terrain, { position, prefab })) continue;
      yield siteAt(world, near, position, 0);
    }
  }
}

/** Whether a site is on the map and free of buildings, roads, water and steep ground. */
function isFree(world: World, site: Footprint, { civic }: BuildingPrefab): boolean {
  const corners = cornersOf(site);
  if (!corners.every(({ x, z }) => Math.max(Math.abs(x), Math.abs(z)) <= MAP_HALF_METERS)) return false;
  if (heightRangeUnder(world, site) > MAX_RISE_METERS) return false;
  if (!civic?.shore && corners.some(({ x, z }) => world.terrain.isWater(x, z))) return false;
  return obstaclesOn(world, site).length === 0;
}
