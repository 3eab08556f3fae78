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

/** Results of the last traffic count on a road. Times are in seconds. */
export interface RoadTraffic {
  /** Vehicles per hour at peak hour. */
  volume: number;
  /** Vehicles counted so far by the count in progress. */
  counted: number;
  /** Travel time to the nearest connection at the map edge; Infinity for none. */
  edgeSeconds: number;
  /** For each service of ROAD_COVERAGES, the id of the building that provides it; 0 for none. */
  readonly providerIds: number[];
  /** For each service of ROAD_COVERAGES, the travel time to the building that provides it. */
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
  /** Later blocks have higher numbers. A cell under two blocks belongs to the block with the lower number. */
  readonly age: number;
  /** Derived: cells that may hold a building, a bit per cell; null until recomputed. */
  usable: number | null;
  /** Derived: cells under a building, a bit per cell; null until recomputed. */
  occupied: number | null;
}

/** Utilities that reach a building, updated once a cycle. */
export interface UtilitySupply {
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
  /** Frame in which the building was last occupied, was abandoned or fell to ruin, whichever is latest. */
  declineFrame: number;
  /** Switched off by a command. Only a command switches it on again. */
  switchedOff: boolean;
  readonly supply: UtilitySupply;

  /** Zone block that contains the building; 0 for none. */
  blockId: number;
  /** Cells of the zone block that the building occupies, one bit for each cell. */
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
  /** Garbage that waits for collection, 0 to 100. */
  garbage: number;
  /** Dead residents that wait for a hearse, in points from 0 to 100 (POINTS_PER_DEAD_RESIDENT each). */
  bodies: number;
  /** Crime in the building, 0 to 100. */
  crime: number;
  /** Health of the residents, 0 to 100. */
  health: number;
  /** Happiness of the residents in the last cycle. */
  happiness: number;
  landValue: number;
  /** Progress to the next level, 0 to 100. */
  progress: number;
  /** Unrest about taxes. Grows while the tax rate is above the tolerated rate. */
  taxUnrest: number;
  /** Cycles since a fire began; 0 for none. */
  burning: number;

  /** For a service building: demand in this cycle so far. */
  load: number;
  /** For a service building: demand in the last cycle. */
  lastLoad: number;
  /** Seconds that visitors wait at a service building with more visitors than capacity. */
  waitSeconds: number;

  /** For a home: mean travel time of the residents to work, in seconds. */
  commute: number;
  /** For a home: unmet shopping need of the residents, 0 to 100. */
  want: number;
  /** Content of a landfill or cemetery. */
  stored: number;
  /** For a power plant: weeks for which the fuel lasts. */
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
