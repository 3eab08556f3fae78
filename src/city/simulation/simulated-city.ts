/**
 * Read access to the loaded city. Only simulation steps and commands (../commands) change the city, each
 * within one turn of the event loop. Reads without an await between them therefore see the same state. Lists
 * are in ascending id order.
 */
import type { Budget, BuildingDetails, ClockState, Demand } from "../game.js";
import type { GroundPoint, Layer, Level, SubService } from "../terms.js";
import { BUILDING_PREFABS } from "./catalogue/building-prefabs.js";
import { NETWORK_PREFABS } from "./catalogue/network-prefabs.js";
import { crossedSegments } from "./fabric/network.js";
import { detailsOf } from "./life/census.js";
import { missingServicesInPieces } from "./life/expectations.js";
import { budgetOf } from "./life/finance.js";
import { coverageAt, layerOf } from "./life/layers.js";
import { trafficOf } from "./life/traffic.js";
import { hashOf, type SaveResult, type StateHash } from "./saves/save-files.js";
import { areasOf } from "./state/areas.js";
import { MAP_HALF_METERS } from "./state/terrain.js";
import type { World } from "./state/world.js";

export class SimulatedCity {
  #hashing: Promise<unknown> = Promise.resolve();
  #nextHash: Promise<StateHash> | null = null;

  /**
   * @param save starts writing a save with the given name; throws CommandRefusedError if another save is
   * being written
   */
  constructor(
    readonly world: World,
    readonly save: (name: string) => SaveResult,
  ) {}

  get clock(): ClockState {
    return this.world.clock;
  }

  /** Counts construction: +1 per node, +2 per segment, +1 per building created. */
  get buildIndex(): number {
    return this.world.buildIndex;
  }

  get citizenCount(): number {
    return this.world.citizens.size;
  }

  /** Total number of lanes of all segments. */
  get laneCount(): number {
    return this.world.segments.all().reduce((sum, { prefab }) => sum + prefab.lanes, 0);
  }

  /** Demand in whole numbers; the simulation keeps fractions. */
  get demand(): Demand {
    const { residential, commercial, workplace } = this.world.demand;
    return {
      residential: Math.round(residential),
      commercial: Math.round(commercial),
      workplace: Math.round(workplace),
    };
  }

  get budget(): Budget {
    return budgetOf(this.world);
  }

  /** Rises whenever a node or segment appears, disappears or moves. Caches of derived data use it as a key. */
  get networkRevision(): number {
    return this.world.networkRevision;
  }

  /** Rises whenever a zone block appears, disappears or is painted. */
  get zoneRevision(): number {
    return this.world.blocks.revision + this.world.paintings;
  }

  /** Rises whenever the network changes or traffic is counted. */
  get trafficRevision(): number {
    return this.world.networkRevision + this.world.trafficCounts;
  }

  readonly nodes = () => this.world.nodes.all();
  readonly node = (id: number) => this.world.nodes.get(id);
  readonly segments = () => this.world.segments.all();
  readonly segment = (id: number) => this.world.segments.get(id);
  /** Ids of the segments that the given segment crosses without a shared node. */
  crossings(segmentId: number): number[] {
    const segment = this.world.segments.get(segmentId);
    return segment ? crossedSegments(this.world, segment.prefab, segment).map(({ id }) => id) : [];
  }

  readonly zoneBlocks = () => this.world.blocks.all();
  readonly zoneBlock = (id: number) => this.world.blocks.get(id);
  readonly buildings = () => this.world.buildings.all();
  readonly building = (id: number) => this.world.buildings.get(id);
  /** Recent messages, oldest first; at most 100. */
  readonly messages = () => this.world.board.messages;
  /** Tax rate in percent, 0 to 29. */
  readonly taxRate = (subService: SubService, level: Level) => this.world.taxes.rate(subService, level);
  /** Statistics, one row per week, oldest first; at most ten years. */
  readonly statistics = () => this.world.statistics.samples;
  /** Supply and demand of each utility network, updated once a cycle. */
  readonly utilities = () => this.world.utilities;
  /** Traffic of a segment; undefined if it is not a road. */
  readonly traffic = (segmentId: number) => trafficOf(this.world, segmentId);

  /**
   * Values of a layer, one per grid square that contains growables. The traffic layer covers squares that
   * contain roads.
   */
  readonly layer = (layer: Layer) => layerOf(this.world, layer);
  /** Quality of each service at a place. */
  readonly coverage = (place: GroundPoint) => coverageAt(this.world, place);

  /**
   * Services that some homes lack although the town expects them or will expect them soon. Sorted by the
   * population at which the town expects the service. Found in steps.
   */
  readonly missingServices = () => missingServicesInPieces(this.world);

  buildingDetails(id: number): BuildingDetails | undefined {
    const building = this.world.buildings.get(id);
    return building && detailsOf(this.world, building);
  }

  /** Tiles that the city can own, row by row from the south-west. */
  readonly areas = () => areasOf(this.world);
  /** All prefabs in load order, including the game's broken assets `Block Services - ...`. */
  readonly networkPrefabs = () => NETWORK_PREFABS;
  readonly buildingPrefabs = () => BUILDING_PREFABS;
  /** Distance from the origin to each edge of the map. */
  readonly mapHalfMeters = MAP_HALF_METERS;
  /** Height of the ground in metres. Outside the map, the height at the nearest edge. */
  readonly groundHeight = (x: number, z: number) => this.world.terrain.groundHeight(x, z);
  /** Height of the ground, or of the water surface where that is higher. */
  readonly surfaceHeight = (x: number, z: number) => this.world.terrain.surfaceHeight(x, z);

  /**
   * Hash of the city's state. The same seed with the same commands at the same frames gives the same hash. One hash is
   * computed at a time; all requests that arrive meanwhile share the next one.
   */
  hash(): Promise<StateHash> {
    if (this.#nextHash) return this.#nextHash;
    const next = this.#hashing.then(() => {
      this.#nextHash = null;
      return hashOf(this.world);
    });
    this.#nextHash = next;
    this.#hashing = next.catch(() => {});
    return next;
  }

  /**
   * Resolves when no save is copying the city. A command that does not wait for this must finish the copy
   * itself.
   */
  async settled(): Promise<void> {
    while (this.world.capture) await this.world.capture.done;
  }
}
