/** Records of the city's state. Fields marked derived are recomputed after a load. */
import type { Position } from "../../geometry.js";
import type { ProblemName, Severity } from "../../terms.js";
import { type BuildingPrefab, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import type { NetworkPrefab } from "../catalogue/network-prefabs.js";

export interface Problems {
  /** Ascending by bit. */
  readonly names: readonly ProblemName[];
  readonly severity: Severity;
}
export const NO_PROBLEMS: Problems = { names: [], severity: "warning" };

export interface NetNode {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  readonly position: Position;
  /** Whether the node connects to the world beyond the map edge. */
  readonly outside: boolean;
  problems: Problems;
  readonly segmentIds: number[];
}

/** A straight segment. */
export interface NetSegment {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  /** Name given by the client, or the generated name of a street; empty for other segments. */
  readonly name: string;
  namedByBuilder: boolean;
  readonly startNodeId: number;
  readonly endNodeId: number;
  readonly start: Position;
  readonly end: Position;
  readonly problems: Problems;
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

/** A strip of zoning cells along one side of a road, four columns deep. */
export interface ZoneBlock {
  readonly id: number;
  readonly segmentId: number;
  /** Position of the block as saves store it: on the edge of the strip that is away from the road. */
  readonly position: Position;
  /** Number of rows along the road, 1 to 8. */
  readonly rows: number;
  /** Zone of cell (column, row), as an index into ZONES, at `row * 4 + column`. Column 0 touches the road. */
  cells: Readonly<Uint8Array>;
  /** Zone of all cells; -1 if the cells have different zones. */
  commonZone: number;
  /** Direction in radians. Columns follow each other along (cos, sin), and rows along (sin, -cos). */
  readonly angleRadians: number;
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

/** Supply and demand of a connected network. Power and heat are in kW, water and sewage in m3 a week. */
export type UtilityNetwork = {
  readonly carries: keyof UtilitySupply;
  readonly supply: number;
  readonly demand: number;
  readonly plantIds: readonly number[];
  readonly consumers: number;
  readonly unserved: number;
};

export interface Building {
  readonly id: number;
  prefab: BuildingPrefab;
  /** Centre of the footprint. */
  readonly position: Position;
  readonly angleDegrees: number;
  /** Bit mask of FLAG. */
  flags: number;
  problems: Problems;
  /** Frame in which each problem began, in the order of `problems.names`. */
  problemSince: number[];
  readonly builtFrame: number;
  /** Frame in which the building was last occupied, was abandoned or fell to ruin, whichever is latest. */
  declineFrame: number;
  /** Switched off by a command, or because the city is in debt. */
  switchedOff: boolean;
  /** Switched off because the city is in debt. The city switches it on again when it can pay. */
  closedForDebt: boolean;
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

interface MessageBase {
  readonly senderName: string;
  readonly text: string;
  readonly messageId: string;
}

export interface CitizenMessage extends MessageBase {
  readonly type: "CitizenMessage";
  readonly senderId: number;
  readonly keyId: string;
  readonly tag: string;
}

interface CityMessage extends MessageBase {
  readonly type: "GenericMessage";
  readonly senderId: 0;
  readonly senderKey: string;
  readonly randomId: number;
}

export type Message = CitizenMessage | CityMessage;
