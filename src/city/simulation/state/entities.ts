/** What the city is made of. These records are the state; fields marked derived are recomputed after a load. */
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

/** What drives on a road, and what can be reached from it, as the last rounds found. Times are in seconds. */
export interface RoadTraffic {
  /** Vehicles per hour at the busiest time, and what the round under way has counted so far. */
  volume: number;
  counted: number;
  /** To the nearest connection at the map edge; Infinity for none. */
  edgeSeconds: number;
  /** By index in ROAD_COVERAGES: who serves the road, 0 for nobody, and how long the way is. */
  readonly providerIds: number[];
  readonly providerSeconds: number[];
  /** The shops that people here go to, the nearest first. */
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
  /** The build index at creation: where blocks overlap, the lower one owns the cell. */
  readonly age: number;
  /** Derived: cells that may hold a building, a bit per cell; null when it has to be worked out anew. */
  usable: number | null;
  /** Derived: cells under a building, a bit per cell; null when it has to be worked out anew. */
  occupied: number | null;
}

/** What the last round of distribution brought to a building. */
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
  /** The frame each of `problems.names` began, in the same order. */
  problemSince: number[];
  readonly builtFrame: number;
  /** The frame it was last occupied, abandoned or collapsed: what its decline is counted from. */
  declineFrame: number;
  /** Switched off by command; nothing but a command switches it on again. */
  switchedOff: boolean;
  readonly supply: Supply;

  /** For a growable: the block and the cells (a bit each) it grew on; block 0 when that is gone or never was. */
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
  /** Piles and gauges, 0 to 100. */
  garbage: number;
  bodies: number;
  crime: number;
  health: number;
  /** How the people who live here last felt. */
  happiness: number;
  landValue: number;
  /** Progress to the next level, 0 to 100. */
  progress: number;
  /** Grows while the tax rate is beyond what the owner bears. */
  taxUnrest: number;
  /** Cycles the fire has been burning; 0 for none. */
  burning: number;

  /** For a service: how much was asked of it in this cycle and in the last one. */
  load: number;
  lastLoad: number;

  /** For a home: seconds to work, on average; and what the shops leave wanting, 0 to 100. */
  commute: number;
  want: number;
  /** For a landfill or cemetery: what lies in it; for a plant: the fuel left, in weeks at full output. */
  stored: number;
  fuel: number;

  /** Derived: the road it opens to, 0 for none. */
  roadId: number;
  /** Derived: pipes within reach. */
  waterPipeIds: number[];
  heatPipeIds: number[];
}

export interface Household {
  readonly id: number;
  readonly homeId: number;
  /** 0 poor, 1 middle, 2 rich. */
  readonly wealth: number;
  readonly memberIds: number[];
}

export interface Citizen {
  readonly id: number;
  readonly householdId: number;
  readonly bornFrame: number;
  /** 0 none, 1 elementary, 2 high school, 3 university. */
  education: number;
  /** The building where the citizen works, 0 for none. */
  workId: number;
}
