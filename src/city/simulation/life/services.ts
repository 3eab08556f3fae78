/**
 * What reaches a building and what its place is worth. The working provider of a service that is nearest by road serves,
 * as well as its capacity and the way allow; parks are walked to. Services raise the value of land, pollution, ruins,
 * crime, taxes and long ways lower it.
 */
import type { GroundPoint } from "../../game.js";
import { distance, distanceToLine, squareAround } from "../../geometry.js";
import { FLAG } from "../../terms.js";
import { type Coverage, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { isActive, isWorking } from "../fabric/buildings.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Streets are longer than the straight line. */
const DETOUR = 1.4;
const STREET_METERS_PER_SECOND = 40 / 3.6;
/** From its middle. */
const ROADSIDE_METERS = 60;

/**
 * Asks for a service on behalf of a building.
 * @param demand how much of the provider's capacity this takes
 * @returns how well it is served, from 0 (not at all) to 1
 */
export function requestService(world: World, building: SimBuilding, kind: Coverage, demand: number): number {
  const served = serviceAt(world, building.position, building.roadId, kind);
  if (!served) return 0;
  served.provider.load += demand;
  return served.quality;
}

/** Who serves a place, and how well: from 0 (not at all) to 1. */
export interface Served {
  readonly provider: SimBuilding;
  readonly quality: number;
}

/** @param roadId the road that the place opens to: to all but parks one drives */
export function serviceAt(world: World, place: GroundPoint, roadId: number, kind: Coverage): Served | null {
  if (kind === "leisure") {
    const provider = nearestProvider(world, place, kind);
    return provider && { provider, quality: shareOf(provider) };
  }
  const index = ROAD_COVERAGES.indexOf(kind);
  const traffic = world.segments.get(roadId)?.traffic;
  const provider = traffic && world.buildings.get(traffic.providerIds[index] as number);
  if (!provider || provider.prefab.civic?.coverage?.kind !== kind || !isWorking(provider)) return null;
  const seconds = traffic.providerSeconds[index] as number;
  const quality = shareOf(provider) * nearness(provider.prefab.civic.coverage.radiusMeters, seconds);
  return quality > 0 ? { provider, quality } : null;
}

/** The road that a place opens to, wherever it is; 0 for none. */
export function roadAt(world: World, place: GroundPoint): number {
  let nearest = ROADSIDE_METERS;
  let roadId = 0;
  for (const segment of world.segments.near(squareAround(place, ROADSIDE_METERS))) {
    const away = distanceToLine(place, segment);
    if (!segment.prefab.frontage || away >= nearest) continue;
    nearest = away;
    roadId = segment.id;
  }
  return roadId;
}

/** The whole of a service within its range, nothing at twice the range, which is meant on an empty street. */
function nearness(rangeMeters: number, seconds: number): number {
  const rangeSeconds = (rangeMeters * DETOUR) / STREET_METERS_PER_SECOND;
  return Math.min(Math.max(2 - seconds / rangeSeconds, 0), 1);
}

/** Less than 1 when more is asked of a provider than it can do. */
function shareOf(provider: SimBuilding): number {
  const capacity = provider.prefab.civic?.coverage?.capacity ?? 0;
  return provider.lastLoad <= capacity ? 1 : capacity / provider.lastLoad;
}

/** At a provider's own turn: what was asked of it since its last turn becomes its load. */
export function rollServiceLoad(building: SimBuilding): void {
  building.lastLoad = building.load;
  building.load = 0;
}

function nearestProvider(world: World, place: GroundPoint, kind: Coverage): SimBuilding | null {
  let nearest: SimBuilding | null = null;
  let nearestAway = Number.POSITIVE_INFINITY;
  for (const provider of world.providers.get(kind)?.items ?? []) {
    const radius = provider.prefab.civic?.coverage?.radiusMeters ?? 0;
    if (Math.abs(provider.position.x - place.x) > radius) continue;
    const away = distance(provider.position, place);
    if (away <= radius && away < nearestAway && isWorking(provider)) {
      nearest = provider;
      nearestAway = away;
    }
  }
  return nearest;
}

/** How far pollution and decay are felt. */
const NUISANCE_METERS = 120;
const INDUSTRY_POLLUTION = 30;
const RUIN_PENALTY = 8;
const BASE_LAND_VALUE = 12;
/** Points that a way of this length and more takes away. */
const REMOTENESS_POINTS = 8;
const REMOTE_SECONDS = 1_800;
/** The share of the way to its new value that land value moves in a cycle. */
const INERTIA = 0.25;

/** Points of land value for full coverage by each service. */
const LAND_VALUE_POINTS: readonly [Coverage, number][] = [
  ["leisure", 22],
  ["health", 8],
  ["police", 8],
  ["fire", 9],
  ["elementary", 8],
  ["highSchool", 6],
  ["university", 8],
  ["garbage", 4],
  ["death", 2],
];
const ALL_SERVICE_POINTS = LAND_VALUE_POINTS.reduce((sum, [, points]) => sum + points, 0);

export interface Surroundings {
  /** How well each service reaches the building, 0 to 1. */
  readonly quality: ReadonlyMap<Coverage, number>;
  /** All services together, 0 to 100. */
  readonly serviceScore: number;
  /** Ground pollution, 0 to 100. */
  readonly pollution: number;
}

/** Looks around a building, asking each service for its share, and moves its land value. */
export function survey(world: World, building: SimBuilding, excessTax: number): Surroundings {
  const people = Math.max(1, building.householdIds.length * 2 + building.workerIds.length);
  const quality = new Map<Coverage, number>();
  let points = 0;
  for (const [kind, worth] of LAND_VALUE_POINTS) {
    const served = requestService(world, building, kind, demandOn(kind, people));
    quality.set(kind, served);
    points += worth * served;
  }
  const { pollution, ruins } = nuisances(world, building.position, building.id);
  const target =
    BASE_LAND_VALUE +
    points -
    REMOTENESS_POINTS * remotenessOf(world, building) -
    pollution * 0.5 -
    ruins * RUIN_PENALTY -
    building.crime * 0.2 -
    excessTax * 2;
  building.landValue += (Math.min(Math.max(target, 0), 100) - building.landValue) * INERTIA;
  return { quality, serviceScore: (100 * points) / ALL_SERVICE_POINTS, pollution };
}

/** 0 to 1, by the way to work from a home, and from the map edge to a business. */
export function remotenessOf(world: World, { homes, commute, roadId }: SimBuilding): number {
  const seconds = homes > 0 ? commute : (world.segments.get(roadId)?.traffic.edgeSeconds ?? REMOTE_SECONDS);
  return Math.min(seconds / REMOTE_SECONDS, 1);
}

/** A building asks some services once and others per head. */
function demandOn(kind: Coverage, people: number): number {
  switch (kind) {
    case "fire":
      return 1;
    case "leisure":
      return people;
    case "health":
      return people / 20;
    case "death":
      return people / 100;
    default:
      return people / 4;
  }
}

/** The pollution of the ground, 0 to 100. */
export function pollutionAt(world: World, place: GroundPoint): number {
  return nuisances(world, place, 0).pollution;
}

/** @param exceptId a building does not spoil its own place */
function nuisances(world: World, place: GroundPoint, exceptId: number): { pollution: number; ruins: number } {
  let pollution = 0;
  let ruins = 0;
  for (const id of world.nuisanceGrid.near(squareAround(place, NUISANCE_METERS))) {
    const other = world.buildings.at(id);
    const away = distance(other.position, place);
    if (id === exceptId || away > NUISANCE_METERS) continue;
    pollution += pollutionOf(other) * (1 - away / NUISANCE_METERS);
    if ((other.flags & FLAG.Abandoned) !== 0) ruins++;
  }
  return { pollution: Math.min(pollution, 100), ruins };
}

function pollutionOf(building: SimBuilding): number {
  if (!isActive(building)) return 0;
  if (building.prefab.service === "Industrial") return INDUSTRY_POLLUTION / building.prefab.level;
  return building.prefab.civic?.pollution ?? 0;
}
