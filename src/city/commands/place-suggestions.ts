/** Free places for a building near a point: along roads, or along the shore for buildings that need water. */
import {
  CELL_METERS,
  cornersOf,
  distance,
  type Footprint,
  footprintRadius,
  footprintsOverlap,
  type GroundPoint,
  lengthOf,
  squareAround,
} from "../geometry.js";
import type { BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { hasPipe, isAtShore } from "../simulation/fabric/reach.js";
import { MAP_HALF_METERS } from "../simulation/state/terrain.js";
import type { World } from "../simulation/state/world.js";
import { inOneGo } from "../steps.js";
import { FOOTPRINT_TOLERANCE_METERS, heightRangeUnder, MAX_RISE_METERS, roadsUnder } from "./site-faults.js";

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

export type PlaceSuggestion = {
  readonly position: { readonly x: number; readonly z: number };
  readonly angleDegrees: number;
  readonly distance: number;
  /** Road beside the place; 0 for a place at the shore. */
  readonly roadSegmentId: number;
  readonly waterPipe: boolean;
};

/** Suggested places, best first; empty if no place within the radius is free. */
export function suggestPlaces(world: World, prefab: BuildingPrefab, near: GroundPoint): PlaceSuggestion[] {
  return inOneGo(suggestPlacesInPieces(world, prefab, near, SUGGESTIONS));
}

/** Like `suggestPlaces`, in steps. The city may change between two of them. */
export function* suggestPlacesInPieces(
  world: World,
  prefab: BuildingPrefab,
  near: GroundPoint,
  count: number,
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
    const isApart = chosen.every((other) => !footprintsOverlap(footprint, { ...other, prefab }, 0));
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
  const ground = squareAround(site.position, footprintRadius(site));
  const isOn = (other: Footprint) => footprintsOverlap(site, other, FOOTPRINT_TOLERANCE_METERS);
  return (
    !world.buildings.near(ground).some((other) => !other.prefab.helper && isOn(other)) &&
    roadsUnder(world, site).length === 0
  );
}
