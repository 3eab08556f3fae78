/**
 * The state of one city. The modules beside this one each own one phenomenon and work on a World; the World itself
 * only holds the records and the indexes that find them.
 */
import type { ClockState, Message, UtilityNetwork } from "../../game.js";
import { BLOCK_COLUMNS, boxAround, CELL_METERS, footprintRadius, squareAround } from "../../geometry.js";
import { FLAG } from "../../terms.js";
import type { JsonObject } from "../../wire/answers.js";
import { COVERAGES, type Coverage } from "../catalogue/building-prefabs.js";
import { gameTimeMs } from "./calendar.js";
import { PlacedPool, Pool, SortedById, SpatialIndex } from "./collections.js";
import { Ledger, Statistics, TaxTable } from "./economy.js";
import type { Citizen, Household, SimBuilding, SimNode, SimSegment, SimZoneBlock } from "./entities.js";
import { Random } from "./random.js";
import { Terrain } from "./terrain.js";

/** Where the game begins to refuse new entities of each kind. */
const LIMITS = {
  nodes: 32_256,
  segments: 36_352,
  blocks: 48_640,
  buildings: 48_640,
  citizens: 1_048_575,
  households: 524_287,
} as const;

const KEPT_MESSAGES = 100;

/** A zone block's cells all lie within this distance of its stored position. */
export const BLOCK_REACH_METERS = CELL_METERS * Math.hypot(BLOCK_COLUMNS, BLOCK_COLUMNS);

/** The recent messages of citizens and city, and the silence after each kind so that nothing is said too often. */
class MessageBoard {
  /** Oldest first. */
  messages: Message[] = [];
  /** Message id -> the frame from which it may be said again. */
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

/** A copy of the city under way (saves/capture.ts). */
export interface CaptureUnderWay {
  /** Copies the rest at once. */
  finish(): void;
  /** Resolves once all is copied. */
  readonly done: Promise<unknown>;
}

export class World {
  /** Sets the automatic saves of this city apart from those of all others; null for one that has none. */
  cityId: string | null = null;
  readonly terrain: Terrain;
  random: Random;
  frame = 0;
  paused = false;
  selectedSpeed = 1;
  buildIndex = 0;
  readonly demand = { residential: 100, commercial: 0, workplace: 0 };
  /** The next road of the traffic count; 0 between two counts. */
  trafficCursor = 0;
  /** Wares made here and not yet sold. */
  wares = 0;
  /** Owned tiles of the map, `tileZ * 5 + tileX`; a city begins with the middle one. */
  readonly areas = new Set([12]);
  /** The largest population that has been celebrated. */
  milestone = 0;
  /** Whether the broken asset package is switched on. */
  blockedAssetEnabled = true;
  /** A setting of the program, not of the city: no command is refused for want of money. */
  unlimitedMoney = false;
  taxes = new TaxTable();
  ledger = new Ledger();
  statistics = new Statistics();
  /** What the last rounds of distribution found. */
  utilities: readonly UtilityNetwork[] = [];
  readonly board = new MessageBoard();
  /** Replies of executed commands by path and `opId`, oldest first. */
  readonly replies = new Map<string, JsonObject>();
  /** Whoever changes the city finishes it first. */
  capture: CaptureUnderWay | null = null;
  /** A command advances the city (../advance.ts): its own clock stands. */
  isAdvancing = false;
  #flagRevision = 0;
  /** Derived: how often a block was painted, and all traffic counted, since the city was loaded. */
  paintings = 0;
  trafficCounts = 0;

  readonly nodes = new PlacedPool<SimNode>("node", LIMITS.nodes, ({ position }) => squareAround(position, 0));
  readonly segments = new PlacedPool<SimSegment>("segment", LIMITS.segments, (segment) =>
    boxAround(segment, 0),
  );
  readonly blocks = new PlacedPool<SimZoneBlock>("zone block", LIMITS.blocks, ({ position }) =>
    squareAround(position, BLOCK_REACH_METERS),
  );
  readonly buildings = new PlacedPool<SimBuilding>("building", LIMITS.buildings, (building) =>
    squareAround(building.position, footprintRadius(building)),
  );
  readonly citizens = new Pool<Citizen>("citizen", LIMITS.citizens);
  readonly households = new Pool<Household>("household", LIMITS.households);

  /** Only the buildings that spoil their surroundings: polluters and abandoned ones. */
  readonly nuisanceGrid = new SpatialIndex();

  /** Buildings by what they are for, so that nobody has to search all of them. */
  readonly providers = new Map<Coverage, SortedById<SimBuilding>>(
    COVERAGES.map((kind) => [kind, new SortedById<SimBuilding>()]),
  );
  readonly workplaces = new SortedById<SimBuilding>();
  /** Derived: those that have fewer workers than jobs, active or not. */
  readonly vacancies = new Set<SimBuilding>();
  readonly #homesByRoad = new ByRoad();
  readonly #workplacesByRoad = new ByRoad();

  constructor(readonly seed: number) {
    this.terrain = new Terrain(seed);
    this.random = Random.fromSeed(seed);
  }

  get clock(): ClockState {
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

  /** Rises whenever a building or a line comes or goes, and when a building is given up, taken again, or becomes rubble. */
  get powerFieldRevision(): number {
    return this.buildings.revision + this.networkRevision + this.#flagRevision;
  }

  putBuilding(building: SimBuilding): void {
    this.buildings.put(building);
    for (const list of this.#listsOf(building)) list.add(building);
    this.noteJobs(building);
    if (isNuisance(building)) this.nuisanceGrid.insert(building.id, squareAround(building.position, 0));
  }

  dropBuilding(building: SimBuilding): void {
    for (const list of this.#listsOf(building)) list.remove(building);
    for (const places of this.#roadsidesOf(building)) places.remove(building);
    this.vacancies.delete(building);
    if (isNuisance(building)) this.nuisanceGrid.remove(building.id, squareAround(building.position, 0));
    this.buildings.remove(building.id);
  }

  /** After the jobs or the workers of a building changed. */
  noteJobs(building: SimBuilding): void {
    if (building.workerIds.length < building.jobs) this.vacancies.add(building);
    else this.vacancies.delete(building);
  }

  /** In ascending id order. */
  homesOn(roadId: number): readonly SimBuilding[] {
    return this.#homesByRoad.on(roadId);
  }

  /** In ascending id order. */
  workplacesOn(roadId: number): readonly SimBuilding[] {
    return this.#workplacesByRoad.on(roadId);
  }

  /** @param roadId 0 for none */
  openTo(building: SimBuilding, roadId: number): void {
    if (building.roadId === roadId) return;
    for (const places of this.#roadsidesOf(building)) places.remove(building);
    building.roadId = roadId;
    for (const places of this.#roadsidesOf(building)) places.add(building);
  }

  /** Changes flags that decide whether a building is a nuisance. */
  changeFlags(building: SimBuilding, flags: number): void {
    const bounds = squareAround(building.position, 0);
    if (isNuisance(building)) this.nuisanceGrid.remove(building.id, bounds);
    building.flags = flags;
    this.#flagRevision++;
    if (isNuisance(building)) this.nuisanceGrid.insert(building.id, bounds);
  }

  #listsOf(building: SimBuilding): SortedById<SimBuilding>[] {
    const lists: SortedById<SimBuilding>[] = [];
    const coverage = building.prefab.civic?.coverage;
    if (coverage) lists.push(this.providers.get(coverage.kind) as SortedById<SimBuilding>);
    if (building.jobs > 0) lists.push(this.workplaces);
    return lists;
  }

  #roadsidesOf({ homes, jobs }: SimBuilding): ByRoad[] {
    return [...(homes > 0 ? [this.#homesByRoad] : []), ...(jobs > 0 ? [this.#workplacesByRoad] : [])];
  }
}

/** Buildings by the road that they open to; those without one are in no list. */
class ByRoad {
  readonly #roads = new Map<number, SortedById<SimBuilding>>();

  on(roadId: number): readonly SimBuilding[] {
    return this.#roads.get(roadId)?.items ?? [];
  }

  add(building: SimBuilding): void {
    if (building.roadId === 0) return;
    const places = this.#roads.get(building.roadId) ?? new SortedById<SimBuilding>();
    this.#roads.set(building.roadId, places);
    places.add(building);
  }

  remove(building: SimBuilding): void {
    this.#roads.get(building.roadId)?.remove(building);
  }
}

function isNuisance({ prefab, flags }: SimBuilding): boolean {
  return (
    prefab.service === "Industrial" || (prefab.civic?.pollution ?? 0) > 0 || (flags & FLAG.Abandoned) !== 0
  );
}
