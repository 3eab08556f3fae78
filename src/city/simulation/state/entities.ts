/** Records of the city's state. Fields marked derived are recomputed after a load. */
import type { Building, NetNode, NetSegment, Problems, ZoneBlock } from "../../game.js";
import { ROAD_COVERAGES, type SimBuildingPrefab } from "../catalogue/building-prefabs.js";
import type { SimNetworkPrefab } from "../catalogue/network-prefabs.js";

export const NO_PROBLEMS: Problems = { names: [], severity: "warning" };

export interface SimNode extends NetNode {
  readonly prefab: SimNetworkPrefab;
  problems: Problems;
  readonly segmentIds: number[];
}

export interface SimSegment extends NetSegment {
  readonly prefab: SimNetworkPrefab;
  readonly namedByBuilder: boolean;
  readonly blockIds: number[];
  readonly traffic: RoadTraffic;
}

/** Traffic of a road, and destinations reached from it, as of the last count. Times are in seconds. */
export interface RoadTraffic {
  /** `volume`: vehicles per hour at peak hour. `counted`: vehicles that the running count has found so far. */
  volume: number;
  counted: number;
  /** Travel time to the nearest connection at the map edge; Infinity for none. */
  edgeSeconds: number;
  /** Building that provides each service of ROAD_COVERAGES (0 for none), and the travel time to it. */
  readonly providerIds: number[];
  readonly providerSeconds: number[];
  /** Shops used by the residents, nearest first. */
  shopIds: number[];
}

export function newTraffic(): RoadTraffic {
  return {
    volume: 0,
    counted: 0,
    edgeSeconds: Number.POSITIVE_INFINITY,
    providerIds: ROAD_COVERAGES.map(() => 0),
    providerSeconds: ROAD_COVERAGES.map(() => Number.POSITIVE_INFINITY),
    shopIds: [],
  };
}

export interface SimZoneBlock extends ZoneBlock {
  cells: Readonly<Uint8Array>;
  commonZone: number;
  /** `buildIndex` of the city when the block was built. Where blocks overlap, the one with the lower age owns the cells. */
  readonly age: number;
  /** Derived: cells that may hold a building, a bit per cell; null until recomputed. */
  usable: number | null;
  /** Derived: cells under a building, a bit per cell; null until recomputed. */
  occupied: number | null;
}

/** Utilities that reach a building, updated once a cycle. */
export interface Supply {
  power: boolean;
  water: boolean;
  sewage: boolean;
  heat: boolean;
}

export interface SimBuilding extends Building {
  prefab: SimBuildingPrefab;
  flags: number;
  problems: Problems;
  /** Frame in which each problem began, in the order of `problems.names`. */
  problemSince: number[];
  readonly builtFrame: number;
  /**
   * Frame from which the time of vacancy or ruin counts: the last frame in which the building was occupied, or
   * the frame in which it was abandoned or fell to ruin.
   */
  declineFrame: number;
  /** Switched off by a command. Only a command switches it on again. */
  switchedOff: boolean;
  readonly supply: Supply;

  /**
   * Zone block and cells (one bit each) that a growable occupies. The block is 0 if it was removed or the building
   * never had one.
   */
  blockId: number;
  lotMask: number;

  homes: number;
  jobs: number;
  visitorPlaces: number;
  readonly householdIds: number[];
  /** Citizens working here. */
  readonly workerIds: number[];
  visitors: number;
  /** Wares in store. */
  goods: number;
  /** Garbage, dead residents, crime, and health of the residents, 0 to 100. */
  garbage: number;
  bodies: number;
  crime: number;
  health: number;
  /** Happiness of the residents in the last cycle. */
  happiness: number;
  landValue: number;
  /** Progress to the next level, 0 to 100. */
  progress: number;
  /** Unrest about taxes, which grows while the tax rate is above the tolerated rate. */
  taxUnrest: number;
  /** Cycles since a fire began; 0 for none. */
  burning: number;

  /** Demand on a service building in this cycle (`load`) and in the last one (`lastLoad`). */
  load: number;
  lastLoad: number;
  /** Seconds that visitors of a service building wait, because more come than it can serve. */
  waitSeconds: number;

  /** For a home: mean travel time of its residents to work in seconds, and their unmet shopping need, 0 to 100. */
  commute: number;
  want: number;
  /** `stored`: content of a landfill or cemetery. `fuel`: weeks for which the fuel of a power plant lasts. */
  stored: number;
  fuel: number;

  /** Derived: road that gives access to the building, or 0. */
  roadId: number;
  /** Derived: ids of pipes within the building's reach. */
  waterPipeIds: number[];
  heatPipeIds: number[];
}

export interface Household {
  readonly id: number;
  readonly homeId: number;
  /** Wealth: 0 poor, 1 middle, 2 rich. */
  readonly wealth: number;
  readonly memberIds: number[];
}

export interface Citizen {
  readonly id: number;
  householdId: number;
  readonly bornFrame: number;
  /** Education: 0 none, 1 elementary, 2 high school, 3 university. */
  education: number;
  /** The building where the citizen works, 0 for none. */
  workId: number;
}
