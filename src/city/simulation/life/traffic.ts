/**
 * Traffic: trips, travel times and volumes. Cars are counted in rounds, one street at a time: residents of the street
 * choose work and shops by travel time, and their cars take the quickest routes. Lorries come from the map edge. At
 * the end of a round the volume of each road moves towards its new count, and the next round chooses routes by these
 * volumes. Cars are not simulated individually.
 */
import { ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { isActive, isSupplied, isWorking } from "../fabric/buildings.js";
import { quitJob, takeJob, workforceOf } from "../fabric/citizens.js";
import {
  type RoadGraph,
  RoadTree,
  roadGraph,
  rootsAtRoadEnds,
  slowdownFactor,
  updateTravelTimes,
} from "../fabric/road-graph.js";
import { FRAMES_PER_CYCLE } from "../state/calendar.js";
import type { Building, Citizen, NetSegment } from "../state/entities.js";
import type { World } from "../state/world.js";

/** Interval in frames at which the traffic count visits the next street. */
const FRAMES_PER_STREET = 2;
/** Maximum number of roads checked per visit to find one with residents. */
const ROADS_PER_VISIT = 64;
/**
 * After each count, the volume of a road moves by this share of the difference towards the new count. The share is
 * below 1, so that jams do not appear or vanish in a day.
 */
const INERTIA = 0.5;

/** Vehicles per worker or household at peak hour. */
const CARS_PER_WORKER = 0.5;
const CARS_PER_HOUSEHOLD = 0.1;
const LORRIES_PER_WORKER = 0.06;
const SHOPS_PER_STREET = 6;
/** Maximum number of vacant workplaces that the residents of a street consider in one count. */
const OFFERS_PER_STREET = 64;
const FEW_VACANCIES = 512;
/** Citizens take no job beyond this travel time, and quit if jams make their trip longer. */
const LONGEST_COMMUTE_SECONDS = 1_200;
const LONGEST_SHOPPING_SECONDS = 900;
/** Chance that a citizen takes the nearest vacancy, else the next nearest, and so on. */
const TAKING_PERCENT = 70;

/** Advances the traffic count by one frame. */
export function countTraffic(world: World): void {
  if (world.trafficCursor === 0) {
    if (world.frame % FRAMES_PER_CYCLE === 0) beginCount(world);
    return;
  }
  if (world.frame % FRAMES_PER_STREET !== 0) return;
  for (let looked = 0; looked < ROADS_PER_VISIT; looked++) {
    const road = world.segments.get(world.trafficCursor++);
    if (world.trafficCursor > world.segments.end) {
      endCount(world);
      return;
    }
    const homes = road?.prefab.frontage ? homesOn(world, road) : [];
    if (road && homes.length > 0) {
      visitStreet(world, road, homes);
      return;
    }
  }
}

function beginCount(world: World): void {
  world.trafficCursor = 1;
  for (const { traffic } of world.segments.values()) traffic.counted = 0;
  countLorries(world);
}

function endCount(world: World): void {
  world.trafficCursor = 0;
  world.trafficCounts++;
  for (const { traffic } of world.segments.values()) {
    traffic.volume += (traffic.counted - traffic.volume) * INERTIA;
  }
  updateTravelTimes(world);
}

/** Counts lorries with wares, fuel and garbage between the map edge and every workplace. */
function countLorries(world: World): void {
  const edges = world.nodes.all().filter(({ outside }) => outside);
  const graph = roadGraph(world);
  const tree = new RoadTree(
    graph,
    edges.map(({ id }) => ({ nodeId: id, seconds: 0, root: id })),
  );
  const bound = new Float64Array(tree.roots.length);
  for (const segment of world.segments.values()) {
    if (segment.prefab.capacityPerHour > 0) segment.traffic.edgeSeconds = tree.secondsTo(segment);
  }
  for (const { roadId, workerIds } of world.workplaces.items) {
    const road = world.segments.get(roadId);
    if (road && workerIds.length > 0)
      deliver(world, tree, bound, road, LORRIES_PER_WORKER * workerIds.length);
  }
  tree.send(bound, (id, lorries) => pass(world, id, lorries));
}

/** Counts the trips of one street's residents to work and shops. */
function visitStreet(world: World, street: NetSegment, homes: readonly Building[]): void {
  const graph = roadGraph(world);
  const tree = new RoadTree(graph, rootsAtRoadEnds(graph, street, street.id));
  const routes = { world, graph, tree, street };
  const bound = new Float64Array(tree.roots.length);
  let cars = commute(routes, homes, (workplace) => {
    const road = world.segments.at(workplace.roadId);
    if (road !== street) deliver(world, tree, bound, road, CARS_PER_WORKER);
  });
  const shops = nearest(routes, sells, LONGEST_SHOPPING_SECONDS, SHOPS_PER_STREET);
  street.traffic.shopIds = shops.map(({ place }) => place.id);
  const households = homes.reduce((sum, { householdIds }) => sum + householdIds.length, 0);
  for (const { place } of shops) {
    const shoppers = (CARS_PER_HOUSEHOLD * households) / shops.length;
    const road = world.segments.at(place.roadId);
    if (road !== street) deliver(world, tree, bound, road, shoppers);
    cars += shoppers;
  }
  pass(world, street.id, cars);
  tree.send(bound, (id, vehicles) => pass(world, id, vehicles));
}

/** Quickest routes from one street to all roads. */
interface StreetRoutes {
  readonly world: World;
  readonly graph: RoadGraph;
  readonly tree: RoadTree;
  readonly street: NetSegment;
}

function secondsTo({ world, graph, tree, street }: StreetRoutes, { roadId }: Building): number {
  if (roadId === street.id) return (graph.seconds[roadId] as number) / 2;
  const road = world.segments.get(roadId);
  return road ? tree.secondsTo(road) : Number.POSITIVE_INFINITY;
}

/**
 * Citizens with a job drive to it, or quit if it is too far. The unemployed look for work, nearest first.
 * @returns vehicles per hour that drive to work
 */
function commute(
  routes: StreetRoutes,
  homes: readonly Building[],
  drive: (workplace: Building) => void,
): number {
  const { world } = routes;
  let openings: Reached[] | null = null;
  let cars = 0;
  for (const home of homes) {
    let seconds = 0;
    let workers = 0;
    for (const citizen of workforceOf(world, home)) {
      if (citizen.workId !== 0) {
        const isTooFar = secondsTo(routes, world.buildings.at(citizen.workId)) > LONGEST_COMMUTE_SECONDS;
        if (isTooFar) quitJob(world, citizen);
      }
      if (citizen.workId === 0) {
        openings ??= openingsFrom(routes);
        seekJob(world, citizen, openings);
      }
      if (citizen.workId === 0) continue;
      const workplace = world.buildings.at(citizen.workId);
      workers++;
      seconds += secondsTo(routes, workplace);
      cars += CARS_PER_WORKER;
      drive(workplace);
    }
    home.commute = workers === 0 ? 0 : seconds / workers;
  }
  return cars;
}

/**
 * Vacancies that the residents of a street can reach, nearest first. A search along the roads would cover the whole
 * city if vacancies are few, so the trip to each vacancy is measured instead.
 */
function openingsFrom(routes: StreetRoutes): Reached[] {
  const { vacancies } = routes.world;
  if (vacancies.size > FEW_VACANCIES) {
    return nearest(routes, hasOpening, LONGEST_COMMUTE_SECONDS, OFFERS_PER_STREET);
  }
  const found: Reached[] = [];
  for (const place of vacancies) {
    if (!hasOpening(place)) continue;
    const seconds = secondsTo(routes, place);
    if (seconds <= LONGEST_COMMUTE_SECONDS) keepNearest(found, { place, seconds }, OFFERS_PER_STREET);
  }
  return found;
}

/** Takes a job at one of the openings, usually the nearest. */
function seekJob(world: World, citizen: Citizen, openings: readonly Reached[]): void {
  const taken = openings.find(({ place }) => hasOpening(place) && world.random.percent(TAKING_PERCENT));
  if (taken) takeJob(world, citizen, taken.place);
}

interface Reached {
  readonly place: Building;
  readonly seconds: number;
}

/** The `limit` nearest suitable workplaces by travel time, those of the street itself first. */
function nearest(
  { world, graph, tree, street }: StreetRoutes,
  isSuitable: (place: Building) => boolean,
  longestSeconds: number,
  limit: number,
): Reached[] {
  const found: Reached[] = [];
  const addFrom = (roadId: number, seconds: number) => {
    if (seconds > longestSeconds) return;
    for (const place of world.workplacesOn(roadId)) {
      if (isSuitable(place)) keepNearest(found, { place, seconds }, limit);
    }
  };
  addFrom(street.id, (graph.seconds[street.id] as number) / 2);
  tree.walk(
    (seconds) => seconds <= (found[limit - 1]?.seconds ?? longestSeconds),
    (roadId, seconds) => {
      if (roadId !== street.id) addFrom(roadId, seconds + (graph.seconds[roadId] as number) / 2);
    },
  );
  return found;
}

/**
 * Adds a place if it is one of the `limit` nearest.
 * @param found the nearest places so far, sorted by travel time
 */
function keepNearest(found: Reached[], reached: Reached, limit: number): void {
  if (found.length < limit) found.push(reached);
  else if (isNearer(reached, found[limit - 1] as Reached)) found[limit - 1] = reached;
  else return;
  for (let i = found.length - 1; i > 0 && isNearer(reached, found[i - 1] as Reached); i--) {
    found[i] = found[i - 1] as Reached;
    found[i - 1] = reached;
  }
}

function isNearer(one: Reached, other: Reached): boolean {
  return one.seconds < other.seconds || (one.seconds === other.seconds && one.place.id < other.place.id);
}

function hasOpening(workplace: Building): boolean {
  const isOpen = isActive(workplace) && isSupplied(workplace) && workplace.roadId !== 0;
  return isOpen && workplace.workerIds.length < workplace.jobs;
}

function sells(place: Building): boolean {
  return place.prefab.service === "Commercial" && isActive(place) && place.goods > 0;
}

function homesOn(world: World, road: NetSegment): Building[] {
  return world.homesOn(road.id).filter(({ householdIds }) => householdIds.length > 0);
}

/** Adds vehicles that drive to a road. Their trip ends at the nearer node of the road. */
function deliver(world: World, tree: RoadTree, bound: Float64Array, road: NetSegment, vehicles: number) {
  pass(world, road.id, vehicles);
  const end = tree.nearEnd(road);
  bound[end] = (bound[end] as number) + vehicles;
}

function pass(world: World, segmentId: number, vehicles: number): void {
  world.segments.at(segmentId).traffic.counted += vehicles;
}

/**
 * For each road, finds the provider of a service with the shortest total of travel and waiting time. Called
 * once a cycle for each service.
 * @param coverageIndex index of the service in ROAD_COVERAGES
 */
export function assignProviders(world: World, coverageIndex: number): void {
  const kind = ROAD_COVERAGES[coverageIndex] as (typeof ROAD_COVERAGES)[number];
  const graph = roadGraph(world);
  const providers = world.providers.get(kind)?.items ?? [];
  const roots = providers.flatMap((provider) => {
    const road = world.segments.get(provider.roadId);
    if (!road || !isWorking(provider)) return [];
    const { id, waitSeconds } = provider;
    return rootsAtRoadEnds(graph, road, id).map((root) => ({ ...root, seconds: root.seconds + waitSeconds }));
  });
  const tree = new RoadTree(graph, roots);
  for (const road of world.segments.values()) {
    if (!road.prefab.frontage) continue;
    const providerId = Math.max(tree.roots[tree.nearEnd(road)] as number, 0);
    const wait = world.buildings.get(providerId)?.waitSeconds ?? 0;
    road.traffic.providerIds[coverageIndex] = providerId;
    road.traffic.providerSeconds[coverageIndex] = tree.secondsTo(road) - wait;
  }
}

export type SegmentTraffic = NonNullable<ReturnType<typeof trafficOf>>;

/** Traffic of a road at peak hour, both directions together; undefined for other segments. */
export function trafficOf({ prefab, traffic }: NetSegment) {
  if (prefab.capacityPerHour === 0) return undefined;
  const load = traffic.volume / prefab.capacityPerHour;
  return {
    volumePerHour: traffic.volume,
    capacityPerHour: prefab.capacityPerHour,
    speedKmh: prefab.speedKmh / slowdownFactor(load),
    freeSpeedKmh: prefab.speedKmh,
    /** Volume in percent of the capacity, at most 100. */
    densityPercent: Math.min(100 * load, 100),
  };
}
