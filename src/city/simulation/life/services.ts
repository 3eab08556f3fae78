/**
 * Service coverage and land value. The working provider with the shortest trip and wait serves a place. Quality
 * depends on the provider's load and on the distance. Parks differ: people walk to all parks in reach. Services raise
 * land value; pollution, ruins, crime, taxes and long trips lower land value.
 */

import { distance, type GroundPoint, squareAround } from "../../geometry.js";
import { type Coverage, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { isAbandoned, isActive, isWorking } from "../fabric/buildings.js";
import { nearestRoad } from "../fabric/reach.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Ratio of street distance to straight distance. */
const DETOUR = 1.4;
const STREET_METERS_PER_SECOND = 40 / 3.6;
/** At twice a provider's capacity, the wait grows in each cycle by this share of the longest wait. */
const WAIT_STEP = 0.05;
/** Maximum distance from a place to its road. */
const ROADSIDE_METERS = 60;

/**
 * Requests a service for a building.
 * @param demand units of the provider's capacity that the building takes
 * @returns quality from 0 (none) to 1
 */
export function requestServiceQuality(
  world: World,
  building: Building,
  kind: Coverage,
  demand: number,
): number {
  if (kind === "leisure") {
    const parks = parksAround(world, building.position);
    visitParks(parks, demand);
    return parkQuality(parks);
  }
  const served = serviceAt(world, building.position, building.roadId, kind);
  if (!served) return 0;
  served.provider.load += demand;
  return served.quality;
}

/**
 * Provider of a service at a place, and the quality of the service there, from 0 (none) to 1. If several parks
 * serve the place, `provider` is the nearest.
 */
export interface ProvidedService {
  readonly provider: Building;
  readonly quality: number;
}

/** @param roadId road at the place; not used for parks */
export function serviceAt(
  world: World,
  place: GroundPoint,
  roadId: number,
  kind: Coverage,
): ProvidedService | null {
  if (kind === "leisure") {
    const parks = parksAround(world, place);
    const [provider] = parks.sort((a, b) => distance(a.position, place) - distance(b.position, place));
    return provider ? { provider, quality: parkQuality(parks) } : null;
  }
  const index = ROAD_COVERAGES.indexOf(kind);
  const traffic = world.segments.get(roadId)?.traffic;
  const provider = traffic && world.buildings.get(traffic.providerIds[index] as number);
  if (!provider || provider.prefab.civic?.coverage?.kind !== kind || !isWorking(provider)) return null;
  const seconds = traffic.providerSeconds[index] as number;
  const quality = shareOf(provider) * nearness(provider.prefab.civic.coverage.radiusMeters, seconds);
  return quality > 0 ? { provider, quality } : null;
}

/** Id of the nearest road to a place; 0 if none is near. */
export function nearestRoadId(world: World, place: GroundPoint): number {
  return nearestRoad(world, place, ROADSIDE_METERS, (_, meters) => meters < ROADSIDE_METERS)?.id ?? 0;
}

/** 1 within the range, falling to 0 at twice the range. Dense traffic makes the range shorter. */
function nearness(rangeMeters: number, seconds: number): number {
  return Math.min(Math.max(2 - seconds / rangeSeconds(rangeMeters), 0), 1);
}

/** Travel time over a provider's whole range on empty streets. */
function rangeSeconds(rangeMeters: number): number {
  return (rangeMeters * DETOUR) / STREET_METERS_PER_SECOND;
}

/** Share of the demand that a provider can serve, at most 1. */
function shareOf(provider: Building): number {
  const capacity = provider.prefab.civic?.coverage?.capacity ?? 0;
  return provider.lastLoad <= capacity ? 1 : capacity / provider.lastLoad;
}

/**
 * Ends a provider's cycle: stores the demand of the cycle as `lastLoad`, and updates the wait. The wait grows if the
 * demand exceeded the capacity, and shrinks otherwise. A long wait makes people choose another provider.
 */
export function closeServiceCycle(building: Building): void {
  building.lastLoad = building.load;
  building.load = 0;
  const coverage = building.prefab.civic?.coverage;
  if (!coverage) return;
  const longest = rangeSeconds(coverage.radiusMeters);
  const excess = Math.min(building.lastLoad / coverage.capacity - 1, 1);
  building.waitSeconds = Math.min(Math.max(building.waitSeconds + WAIT_STEP * excess * longest, 0), longest);
}

/** Working parks within walking distance. */
function parksAround(world: World, place: GroundPoint): Building[] {
  return (world.providers.get("leisure")?.items ?? []).filter((park) => {
    const radius = park.prefab.civic?.coverage?.radiusMeters ?? 0;
    const isNear = Math.abs(park.position.x - place.x) <= radius && distance(park.position, place) <= radius;
    return isNear && isWorking(park);
  });
}

/** Share of the visitors that each park gets. Crowded parks get fewer. */
function choicesOf(parks: readonly Building[]): number[] {
  const shares = parks.map(shareOf);
  const sum = shares.reduce((all, share) => all + share, 0);
  return shares.map((share) => share / sum);
}

/** Mean quality for the visitors of these parks, 0 to 1. */
function parkQuality(parks: readonly Building[]): number {
  return choicesOf(parks).reduce((all, choice, i) => all + choice * shareOf(parks[i] as Building), 0);
}

/** Distributes visitors among parks. */
function visitParks(parks: readonly Building[], visitors: number): void {
  for (const [i, choice] of choicesOf(parks).entries()) (parks[i] as Building).load += visitors * choice;
}

/** Radius within which pollution and abandoned buildings have an effect. */
const NUISANCE_METERS = 120;
const INDUSTRY_POLLUTION = 30;
const RUIN_PENALTY = 8;
const BASE_LAND_VALUE = 12;
/** Points of land value that a building loses if its trips take REMOTE_SECONDS or more. */
const REMOTENESS_POINTS = 8;
const REMOTE_SECONDS = 900;
/** In each cycle, land value moves by this share towards its target. */
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
  /** Quality of each service at the building, 0 to 1. */
  readonly quality: ReadonlyMap<Coverage, number>;
  /** Quality of all services together, 0 to 100. */
  readonly serviceScore: number;
  /** Ground pollution, 0 to 100. */
  readonly pollution: number;
}

/** Updates a building's services and land value. */
export function updateSurroundings(world: World, building: Building, excessTax: number): Surroundings {
  const people = Math.max(1, building.householdIds.length * 2 + building.workerIds.length);
  const quality = new Map<Coverage, number>();
  let points = 0;
  for (const [kind, worth] of LAND_VALUE_POINTS) {
    const served = requestServiceQuality(world, building, kind, demandOn(kind, people));
    quality.set(kind, served);
    points += worth * served;
  }
  const around = nuisances(world, building.position, building.id);
  const target = BASE_LAND_VALUE + points - burdens(world, building, around, excessTax).total;
  building.landValue += (Math.min(Math.max(target, 0), 100) - building.landValue) * INERTIA;
  return { quality, serviceScore: (100 * points) / ALL_SERVICE_POINTS, pollution: around.pollution };
}

/** Points of land value lost to each cause. */
function burdens(
  world: World,
  building: Building,
  { pollution, ruins }: { pollution: number; ruins: number },
  excessTax: number,
) {
  const lost = {
    remoteness: REMOTENESS_POINTS * remotenessOf(world, building),
    pollution: pollution * 0.5,
    ruins: ruins * RUIN_PENALTY,
    crime: building.crime * 0.2,
    taxes: excessTax * 2,
  };
  return { ...lost, total: lost.remoteness + lost.pollution + lost.ruins + lost.crime + lost.taxes };
}

/**
 * Returns the quality of each service at a building, and how many points each cause adds to the building's target
 * land value. The query adds no load to the services.
 */
export function landValueParts(world: World, building: Building, excessTax: number) {
  const quality = new Map<Coverage, number>();
  const parts: Record<string, number> = { base: BASE_LAND_VALUE };
  for (const [kind, worth] of LAND_VALUE_POINTS) {
    const served = serviceAt(world, building.position, building.roadId, kind)?.quality ?? 0;
    quality.set(kind, served);
    parts[kind] = worth * served;
  }
  const around = nuisances(world, building.position, building.id);
  const { total: _total, ...lost } = burdens(world, building, around, excessTax);
  for (const [cause, points] of Object.entries(lost)) parts[cause] = -points;
  return { quality, parts };
}

/** Remoteness from 0 to 1: a home's commute, or a business's travel time to the map edge. */
export function remotenessOf(world: World, { homes, commute, roadId }: Building): number {
  const seconds = homes > 0 ? commute : (world.segments.get(roadId)?.traffic.edgeSeconds ?? REMOTE_SECONDS);
  return Math.min(seconds / REMOTE_SECONDS, 1);
}

/**
 * Demand of a building for a service, in units of the provider's capacity. The demand for schools is 0, because
 * `residents.ts` requests a school for each pupil.
 */
function demandOn(kind: Coverage, people: number): number {
  switch (kind) {
    case "elementary":
    case "highSchool":
    case "university":
      return 0;
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

/** Ground pollution at a place, 0 to 100. */
export function pollutionAt(world: World, place: GroundPoint): number {
  return nuisances(world, place, 0).pollution;
}

/** Pollution and number of ruins at a place. @param exceptId id of a building to ignore; 0 for none */
function nuisances(world: World, place: GroundPoint, exceptId: number): { pollution: number; ruins: number } {
  let pollution = 0;
  let ruins = 0;
  for (const id of world.nuisanceGrid.near(squareAround(place, NUISANCE_METERS))) {
    const other = world.buildings.at(id);
    const away = distance(other.position, place);
    if (id === exceptId || away > NUISANCE_METERS) continue;
    pollution += pollutionOf(other) * (1 - away / NUISANCE_METERS);
    if (isAbandoned(other)) ruins++;
  }
  return { pollution: Math.min(pollution, 100), ruins };
}

function pollutionOf(building: Building): number {
  if (!isActive(building)) return 0;
  if (building.prefab.service === "Industrial") return INDUSTRY_POLLUTION / building.prefab.level;
  return building.prefab.civic?.pollution ?? 0;
}
