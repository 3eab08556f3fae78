/** The embedded city behind the game interface: reads straight from its world, commands to the modules that know. */
import type {
  Budget,
  BuildingDetails,
  City,
  ClockState,
  Command,
  CommandResults,
  Demand,
  SaveResult,
  SetSimulationSpeed,
} from "../game.js";
import type { GroundPoint, Layer, Level, SubService } from "../terms.js";
import { BUILDING_PREFABS } from "./catalogue/building-prefabs.js";
import { NETWORK_PREFABS } from "./catalogue/network-prefabs.js";
import { areasOf, unlockArea } from "./commands/area-commands.js";
import {
  buildNetwork,
  bulldoze,
  disableBlockedAssets,
  moveBuilding,
  placeBuilding,
  setBuildingActive,
  setBuildingEmptying,
} from "./commands/build-commands.js";
import {
  buildConnection,
  buildGrid,
  buildNeighborhood,
  bulldozeArea,
} from "./commands/composite-commands.js";
import { crossedBy } from "./commands/network-plan.js";
import { repairZoneClusters, repairZonesToGrowables, setZone } from "./commands/zone-commands.js";
import { detailsOf } from "./life/census.js";
import { budgetOf, takeLoan } from "./life/finance.js";
import { coverageAt, layerOf } from "./life/layers.js";
import { setTaxRate } from "./life/taxes.js";
import { trafficOf } from "./life/traffic.js";
import { MAP_HALF_METERS } from "./state/terrain.js";
import type { World } from "./state/world.js";

type Handlers = {
  readonly [T in Command["type"]]: (command: Extract<Command, { type: T }>) => CommandResults[T];
};

export class SimulatedCity implements City {
  readonly #handlers: Handlers;

  /** @param save begins to write the world under a name */
  constructor(
    readonly world: World,
    save: (name: string) => SaveResult,
  ) {
    this.#handlers = {
      "build-network": (command) => buildNetwork(world, command),
      "set-zone": (command) => setZone(world, command),
      "repair-zones-to-growables": (command) => repairZonesToGrowables(world, command.dryRun),
      "repair-zone-clusters": (command) => repairZoneClusters(world, command),
      "place-building": (command) => placeBuilding(world, command),
      "move-building": (command) => moveBuilding(world, command),
      "set-building-active": (command) => setBuildingActive(world, command),
      "set-building-emptying": (command) => setBuildingEmptying(world, command),
      "disable-blocked-assets": () => disableBlockedAssets(world),
      bulldoze: (command) => bulldoze(world, command),
      save: (command) => save(command.name),
      "set-simulation-speed": (command) => setSimulationSpeed(world, command),
      "set-tax-rate": (command) => setTaxRate(world, command),
      "take-loan": (command) => takeLoan(world, command),
      "unlock-area": (command) => unlockArea(world, command),
      "build-grid": (command) => buildGrid(world, command),
      connect: (command) => buildConnection(world, command),
      "build-neighborhood": (command) => buildNeighborhood(world, command),
      "bulldoze-area": (command) => bulldozeArea(world, command),
    };
  }

  get clock(): ClockState {
    return this.world.clock;
  }

  get buildIndex(): number {
    return this.world.buildIndex;
  }

  get citizenCount(): number {
    return this.world.citizens.size;
  }

  get laneCount(): number {
    return this.world.segments.all().reduce((sum, { prefab }) => sum + prefab.lanes, 0);
  }

  /** The bars move by fractions; they show whole numbers. */
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

  get networkRevision(): number {
    return this.world.networkRevision;
  }

  get zoneRevision(): number {
    return this.world.blocks.revision + this.world.paintings;
  }

  get trafficRevision(): number {
    return this.world.networkRevision + this.world.trafficCounts;
  }

  readonly nodes = () => this.world.nodes.all();
  readonly node = (id: number) => this.world.nodes.get(id);
  readonly segments = () => this.world.segments.all();
  readonly segment = (id: number) => this.world.segments.get(id);
  crossings(segmentId: number): number[] {
    const segment = this.world.segments.get(segmentId);
    if (!segment) return [];
    const endAt = (id: number) => {
      const node = this.world.nodes.at(id);
      return { point: node.position, node, reused: true };
    };
    const link = { prefab: segment.prefab, from: endAt(segment.startNodeId), to: endAt(segment.endNodeId) };
    return crossedBy(this.world, link).map(({ id }) => id);
  }

  readonly zoneBlocks = () => this.world.blocks.all();
  readonly zoneBlock = (id: number) => this.world.blocks.get(id);
  readonly buildings = () => this.world.buildings.all();
  readonly building = (id: number) => this.world.buildings.get(id);
  readonly messages = () => this.world.board.messages;
  readonly taxRate = (subService: SubService, level: Level) => this.world.taxes.rate(subService, level);
  readonly statistics = () => this.world.statistics.samples;
  readonly utilities = () => this.world.utilities;
  readonly traffic = (segmentId: number) => trafficOf(this.world, segmentId);

  readonly layer = (layer: Layer) => layerOf(this.world, layer);
  readonly coverage = (place: GroundPoint) => coverageAt(this.world, place);

  buildingDetails(id: number): BuildingDetails | undefined {
    const building = this.world.buildings.get(id);
    return building && detailsOf(this.world, building);
  }

  readonly areas = () => areasOf(this.world);
  readonly networkPrefabs = () => NETWORK_PREFABS;
  readonly buildingPrefabs = () => BUILDING_PREFABS;
  readonly mapHalfMeters = MAP_HALF_METERS;
  readonly groundHeight = (x: number, z: number) => this.world.terrain.groundHeight(x, z);
  readonly surfaceHeight = (x: number, z: number) => this.world.terrain.surfaceHeight(x, z);

  async settled(): Promise<void> {
    while (this.world.capture) await this.world.capture.done;
  }

  apply<C extends Command>(command: C): CommandResults[C["type"]] {
    this.world.capture?.finish();
    const handle = this.#handlers[command.type] as (command: Command) => CommandResults[C["type"]];
    return handle(command);
  }
}

function setSimulationSpeed(world: World, command: SetSimulationSpeed): ClockState {
  world.paused = command.paused;
  world.selectedSpeed = Math.min(Math.max(Math.trunc(command.speed) || 1, 1), 3);
  return world.clock;
}
