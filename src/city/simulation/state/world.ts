/** The records of one city and their indexes. The rules are in other modules. */
import { BLOCK_COLUMNS, boxAround, CELL_METERS, footprintRadius, squareAround } from "../../geometry.js";
import { FLAG } from "../../terms.js";
import { COVERAGES, type Coverage } from "../catalogue/building-prefabs.js";
import { gameTimeMs } from "./calendar.js";
import { PlacedPool, Pool, SortedById, SpatialIndex } from "./collections.js";
import { CityStatistics, Ledger, TaxTable } from "./economy.js";
import type {
  Building,
  Citizen,
  Household,
  Message,
  NetNode,
  NetSegment,
  UtilityNetwork,
  ZoneBlock,
} from "./entities.js";
import { Random } from "./random.js";
import { Terrain } from "./terrain.js";

/** Maximum number of entities of each kind, as in the game. */
export const LIMITS = {
  nodes: 32_256,
  segments: 36_352,
  blocks: 48_640,
  buildings: 48_640,
  citizens: 1_048_575,
  households: 524_287,
} as const;

const KEPT_MESSAGES = 100;

/** A zone block's cells all lie within this distance of its stored position. */
export const ZONE_BLOCK_RADIUS_METERS = CELL_METERS * Math.hypot(BLOCK_COLUMNS, BLOCK_COLUMNS);

/** Recent messages of citizens and city, with a minimum time between messages of one kind. */
class MessageBoard {
  /** Recent messages, oldest first. */
  messages: Message[] = [];
  /** Message id -> first frame in which it may be repeated. */
  quietUntil = new Map<string, number>();

  isQuiet(messageId: string, frame: number): boolean {
    return frame < (this.quietUntil.get(messageId) ?? 0);
  }

  post(message: Message, quietUntilFrame: number): void {
    this.messages.push(message);
    if (this.messages.length > KEPT_MESSAGES) this.messages.shift();
    this.quietUntil.set(message.messageId, quietUntilFrame);
  }
}

/** A running capture of the city (saves/capture.ts). */
export interface RunningCapture {
  /** Copies the rest of the city immediately. */
  finish(): void;
  /** Resolves once the whole city is copied. */
  readonly done: Promise<unknown>;
}

export class World {
  /** Id in the names of automatic saves. A city of an old save has none before its first. */
  cityId: string | null = null;
  readonly terrain: Terrain;
  random: Random;
  frame = 0;
  paused = false;
  selectedSpeed = 1;
  buildIndex = 0;
  readonly demand = { residential: 100, commercial: 0, workplace: 0 };
  /** Id of the next road in the running traffic count; 0 between two counts. */
  trafficCursor = 0;
  /** Wares made in the city and not sold yet. */
  wares = 0;
  /** Owned tiles of the map, `tileZ * 5 + tileX`; a city begins with the middle one. */
  readonly areas = new Set([12]);
  /** Largest population milestone reached. */
  milestone = 0;
  /** Whether the game's broken assets `Block Services - ...` are enabled; only reported to clients. */
  blockedAssetEnabled = true;
  /** Whether commands are accepted even without money. A setting of the program, so it is not saved. */
  unlimitedMoney = false;
  taxes = new TaxTable();
  ledger = new Ledger();
  statistics = new CityStatistics();
  /** Supply and demand of each utility network, updated once a cycle. */
  utilities: readonly UtilityNetwork[] = [];
  readonly board = new MessageBoard();
  /** Replies of executed commands by path and `opId`, oldest first. */
  readonly replies = new Map<string, object>();
  /** Running capture, or null. Must be finished before the city changes. */
  capture: RunningCapture | null = null;
  /** Whether the `advance` command (../advance.ts) is running, so that the city's own clock is stopped. */
  isAdvancing = false;
  /** Whether another city is about to replace this one. Time then stands still, so that its last save is complete. */
  isLeaving = false;
  /** Numbers of changed flags, painted blocks and finished traffic counts since the city was loaded. Saves omit them. */
  #flagRevision = 0;
  paintings = 0;
  trafficCounts = 0;

  readonly nodes = new PlacedPool<NetNode>("node", LIMITS.nodes, ({ position }) => squareAround(position, 0));
  readonly segments = new PlacedPool<NetSegment>("segment", LIMITS.segments, (segment) =>
    boxAround(segment, 0),
  );
  readonly blocks = new PlacedPool<ZoneBlock>("zone block", LIMITS.blocks, ({ position }) =>
    squareAround(position, ZONE_BLOCK_RADIUS_METERS),
  );
  readonly buildings = new PlacedPool<Building>("building", LIMITS.buildings, (building) =>
    squareAround(building.position, footprintRadius(building)),
  );
  readonly citizens = new Pool<Citizen>("citizen", LIMITS.citizens);
  readonly households = new Pool<Household>("household", LIMITS.households);

  /** Buildings that harm their surroundings: polluters and abandoned ones. */
  readonly nuisanceGrid = new SpatialIndex();

  /** Buildings by the service that they provide. */
  readonly providers = new Map<Coverage, SortedById<Building>>(
    COVERAGES.map((kind) => [kind, new SortedById<Building>()]),
  );
  readonly workplaces = new SortedById<Building>();
  /** Workplaces with fewer workers than jobs, including inactive workplaces. Saves omit this set. */
  readonly vacancies = new Set<Building>();
  readonly #homesByRoad = new ByRoad();
  readonly #workplacesByRoad = new ByRoad();

  constructor(readonly seed: number) {
    this.terrain = new Terrain(seed);
    this.random = Random.fromSeed(seed);
  }

  /** Game time, and the speed: the chosen one is kept while the city is paused. */
  get clock() {
    return {
      gameTimeMs: gameTimeMs(this.frame),
      paused: this.paused,
      selectedSpeed: this.selectedSpeed,
      finalSpeed: this.paused ? 0 : this.selectedSpeed,
    };
  }

  /** Rises with every change to nodes or segments. */
  get networkRevision(): number {
    return this.nodes.revision + this.segments.revision;
  }

  /** Rises whenever a zone block appears, disappears or is painted. */
  get zoneRevision(): number {
    return this.blocks.revision + this.paintings;
  }

  /** Rises whenever the network changes or traffic is counted. */
  get trafficRevision(): number {
    return this.networkRevision + this.trafficCounts;
  }

  /** Rises whenever a building or power line is added or removed, or a building is abandoned, reoccupied or collapses. */
  get powerFieldRevision(): number {
    return this.buildings.revision + this.networkRevision + this.#flagRevision;
  }

  putBuilding(building: Building): void {
    this.buildings.put(building);
    for (const list of this.#listsOf(building)) list.add(building);
    this.updateVacancy(building);
    if (isNuisance(building)) this.nuisanceGrid.insert(building.id, squareAround(building.position, 0));
  }

  dropBuilding(building: Building): void {
    for (const list of this.#listsOf(building)) list.remove(building);
    for (const places of this.#roadsidesOf(building)) places.remove(building);
    this.vacancies.delete(building);
    if (isNuisance(building)) this.nuisanceGrid.remove(building.id, squareAround(building.position, 0));
    this.buildings.remove(building.id);
  }

  /** Adds the building to the vacancies, or removes it, after its jobs or workers changed. */
  updateVacancy(building: Building): void {
    if (building.workerIds.length < building.jobs) this.vacancies.add(building);
    else this.vacancies.delete(building);
  }

  /** Homes that have access to the given road, in ascending id order. */
  homesOn(roadId: number): readonly Building[] {
    return this.#homesByRoad.on(roadId);
  }

  /** Workplaces that have access to the given road, in ascending id order. */
  workplacesOn(roadId: number): readonly Building[] {
    return this.#workplacesByRoad.on(roadId);
  }

  /** Sets the road that gives access to a building. @param roadId 0 for none */
  setAccessRoad(building: Building, roadId: number): void {
    if (building.roadId === roadId) return;
    for (const places of this.#roadsidesOf(building)) places.remove(building);
    building.roadId = roadId;
    for (const places of this.#roadsidesOf(building)) places.add(building);
  }

  /** Sets flags that decide whether the building is a nuisance, and updates the index of nuisances. */
  changeFlags(building: Building, flags: number): void {
    const bounds = squareAround(building.position, 0);
    if (isNuisance(building)) this.nuisanceGrid.remove(building.id, bounds);
    building.flags = flags;
    this.#flagRevision++;
    if (isNuisance(building)) this.nuisanceGrid.insert(building.id, bounds);
  }

  #listsOf(building: Building): SortedById<Building>[] {
    const lists: SortedById<Building>[] = [];
    const coverage = building.prefab.civic?.coverage;
    if (coverage) lists.push(this.providers.get(coverage.kind) as SortedById<Building>);
    if (building.jobs > 0) lists.push(this.workplaces);
    return lists;
  }

  #roadsidesOf({ homes, jobs }: Building): ByRoad[] {
    return [...(homes > 0 ? [this.#homesByRoad] : []), ...(jobs > 0 ? [this.#workplacesByRoad] : [])];
  }
}

/** Buildings by the road that gives access to them. Buildings without a road are left out. */
class ByRoad {
  readonly #roads = new Map<number, SortedById<Building>>();

  on(roadId: number): readonly Building[] {
    return this.#roads.get(roadId)?.items ?? [];
  }

  add(building: Building): void {
    if (building.roadId === 0) return;
    const places = this.#roads.get(building.roadId) ?? new SortedById<Building>();
    this.#roads.set(building.roadId, places);
    places.add(building);
  }

  remove(building: Building): void {
    this.#roads.get(building.roadId)?.remove(building);
  }
}

function isNuisance({ prefab, flags }: Building): boolean {
  return (
    prefab.service === "Industrial" || (prefab.civic?.pollution ?? 0) > 0 || (flags & FLAG.Abandoned) !== 0
  );
}
