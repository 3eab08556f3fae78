/** Network prefabs, by their names in the game. Widths, lanes and costs approximate the game's values. */
import type { Service, SubService } from "../../terms.js";

export interface NetworkPrefab {
  readonly name: string;
  readonly displayName: string;
  readonly service: Service;
  readonly subService: SubService;
  readonly elevation: "ground" | "elevated" | "bridge" | "slope" | "tunnel";
  readonly widthMeters: number;
  readonly lanes: number;
  /** Whether zone blocks are created along the road. */
  readonly zoning: boolean;
  /** What the network carries. */
  readonly carries: "traffic" | "water" | "heat" | "power" | "other";
  /** Whether buildings can connect to the road. */
  readonly frontage: boolean;
  readonly costPerCell: number;
  /** Upkeep per week; 0 for highways, which the state maintains. */
  readonly upkeepPerCell: number;
  /** Speed of cars on an empty road; 0 for networks without cars. */
  readonly speedKmh: number;
  /** Vehicles per hour that all lanes together carry without delay; 0 for networks without cars. */
  readonly capacityPerHour: number;
}

/** Most elevated variants are named like the road plus a suffix; `elevatedName` is any other name. */
type RoadRow = readonly [
  name: string,
  displayName: string,
  lanes: number,
  widthMeters: number,
  costPerCell: number,
  elevatedName?: string,
];

const BASE_ROADS: readonly RoadRow[] = [
  ["Basic Road", "Two-Lane Road", 6, 16, 40],
  ["Gravel Road", "Gravel Road", 4, 16, 25],
  ["Basic Road Decoration Grass", "Two-Lane Road with Grass", 6, 16, 50],
  ["Basic Road Decoration Trees", "Two-Lane Road with Trees", 6, 16, 50],
  ["Basic Road Bicycle", "Two-Lane Road with Bicycle Lanes", 6, 16, 60, "Basic Road Elevated Bike"],
  ["Basic Road Tram", "Two-Lane Road with Tram Tracks", 6, 16, 80],
  ["Oneway Road", "Two-Lane One-Way Road", 6, 16, 40],
  ["Oneway Road Decoration Grass", "Two-Lane One-Way Road with Grass", 6, 16, 50],
  ["Oneway Road Decoration Trees", "Two-Lane One-Way Road with Trees", 6, 16, 50],
  ["Medium Road", "Four-Lane Road", 8, 32, 60],
  ["Medium Road Decoration Grass", "Four-Lane Road with Grass", 6, 32, 70],
  ["Medium Road Decoration Trees", "Four-Lane Road with Trees", 6, 32, 70],
  ["Medium Road Bicycle", "Four-Lane Road with Bicycle Lanes", 8, 32, 80],
  ["Medium Road Bus", "Four-Lane Road with Bus Lanes", 8, 32, 80],
  ["Medium Road Tram", "Four-Lane Road with Tram Tracks", 8, 32, 80],
  ["Large Road", "Six-Lane Road", 10, 32, 80],
  ["Large Road Decoration Grass", "Six-Lane Road with Grass", 8, 32, 90],
  ["Large Road Decoration Trees", "Six-Lane Road with Trees", 8, 32, 90],
  ["Large Road Bicycle", "Six-Lane Road with Bicycle Lanes", 10, 32, 100],
  ["Large Road Bus", "Six-Lane Road with Bus Lanes", 10, 32, 100],
  ["Large Oneway", "Six-Lane One-Way Road", 10, 32, 80],
  ["Large Oneway Decoration Grass", "Six-Lane One-Way Road with Grass", 8, 32, 90],
  ["Large Oneway Decoration Trees", "Six-Lane One-Way Road with Trees", 8, 32, 90],
  ["Highway", "Highway", 3, 24, 80],
  ["Highway Barrier", "Highway with Sound Barrier", 3, 24, 100],
  ["HighwayRamp", "Highway Ramp", 1, 16, 60, "HighwayRampElevated"],
];

/** Car lanes and speed of a road. The first row whose prefix matches the road's name counts. */
const ROAD_CLASSES: readonly (readonly [prefix: string, carLanes: number, speedKmh: number])[] = [
  ["HighwayRamp", 1, 80],
  ["Highway", 3, 100],
  ["Large", 6, 60],
  ["Medium", 4, 50],
  ["Gravel", 2, 30],
  ["", 2, 40],
];
/** Weekly upkeep as a share of the price. It gives 0.32 per cell for a two-lane road, as in the game. */
const UPKEEP_SHARE = 0.008;
/** Vehicles per hour. Streets carry fewer than highways, because streets have crossings. */
const LANE_CAPACITY_PER_HOUR = { street: 700, highway: 1_800 };

const RAISED = [
  { elevation: "elevated", suffix: "Elevated", costFactor: 3 },
  { elevation: "bridge", suffix: "Bridge", costFactor: 4 },
  { elevation: "slope", suffix: "Slope", costFactor: 5 },
  { elevation: "tunnel", suffix: "Tunnel", costFactor: 5 },
] as const;

type Elevation = NetworkPrefab["elevation"];
type Kind = Pick<NetworkPrefab, "service" | "subService" | "carries" | "widthMeters" | "lanes">;

const PIPE: Kind = { service: "Water", subService: "None", carries: "water", widthMeters: 4, lanes: 0 };
const PATH: Kind = {
  service: "Beautification",
  subService: "BeautificationParks",
  carries: "other",
  widthMeters: 4,
  lanes: 1,
};
const TRACK: Kind = {
  service: "PublicTransport",
  subService: "PublicTransportTrain",
  carries: "other",
  widthMeters: 16,
  lanes: 2,
};

/** Every network prefab, in load order: ground roads, their raised and sunken variants, then the rest. */
export const NETWORK_PREFABS: readonly NetworkPrefab[] = [
  ...BASE_ROADS.map((row) => road(row, "ground", row[0], 1)),
  ...BASE_ROADS.flatMap((row) =>
    RAISED.map(({ elevation, suffix, costFactor }) => {
      const irregular = elevation === "elevated" ? row[5] : undefined;
      return road(row, elevation, irregular ?? `${row[0]} ${suffix}`, costFactor);
    }),
  ),
  other("Water Pipe", PIPE, 15),
  other("Heating Pipe", { ...PIPE, carries: "heat" }, 15),
  other("Power Line", { ...PIPE, service: "Electricity", carries: "power" }, 18),
  other("Pedestrian Pavement", PATH, 10),
  other("Pedestrian Gravel", PATH, 10),
  other("Pedestrian Elevated", PATH, 30, "elevated"),
  other("Train Track", TRACK, 60),
  other("Train Track Elevated", TRACK, 180, "elevated"),
  other("Train Track Bridge", TRACK, 240, "bridge"),
  other("Metro Track", { ...TRACK, subService: "PublicTransportMetro" }, 60, "tunnel"),
];

const BY_NAME = new Map(NETWORK_PREFABS.map((prefab) => [prefab.name, prefab]));

export function findNetworkPrefab(name: string): NetworkPrefab | undefined {
  return BY_NAME.get(name);
}

function road(
  [baseName, displayName, lanes, widthMeters, cost]: RoadRow,
  elevation: Elevation,
  name: string,
  costFactor: number,
): NetworkPrefab {
  const isHighway = baseName.startsWith("Highway");
  const isStreet = elevation === "ground" && !isHighway;
  const roadClass = ROAD_CLASSES.find(([prefix]) => baseName.startsWith(prefix));
  const [, carLanes = 0, speedKmh = 0] = roadClass ?? [];
  return {
    name,
    displayName,
    service: "Road",
    subService: "None",
    elevation,
    widthMeters,
    lanes,
    zoning: isStreet,
    carries: "traffic",
    frontage: isStreet,
    costPerCell: cost * costFactor,
    upkeepPerCell: isHighway ? 0 : cost * costFactor * UPKEEP_SHARE,
    speedKmh,
    capacityPerHour: carLanes * LANE_CAPACITY_PER_HOUR[isHighway ? "highway" : "street"],
  };
}

function other(
  name: string,
  kind: Kind,
  costPerCell: number,
  elevation: Elevation = "ground",
): NetworkPrefab {
  const upkeepPerCell = costPerCell * UPKEEP_SHARE;
  const noCars = { zoning: false, frontage: false, speedKmh: 0, capacityPerHour: 0 };
  return { name, displayName: name, ...kind, elevation, costPerCell, upkeepPerCell, ...noCars };
}
