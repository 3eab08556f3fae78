/**
 * The network prefabs of the embedded city, by their names in the game. Widths, lanes and costs are recollections of
 * the game's values; the interface shows none of them but the lane count.
 */
import type { NetworkPrefab } from "../../game.js";
import type { Service, SubService } from "../../terms.js";

export interface SimNetworkPrefab extends NetworkPrefab {
  /** What flows through it. */
  readonly carries: "traffic" | "water" | "heat" | "power" | "other";
  /** Buildings may have their access from it. */
  readonly frontage: boolean;
  readonly costPerCell: number;
}

interface RoadRow {
  readonly name: string;
  readonly displayName: string;
  readonly lanes: number;
  readonly widthMeters: number;
  readonly costPerCell: number;
  readonly highway?: boolean;
  /** Irregular spellings of the raised variants. */
  readonly elevatedName?: string;
}

const BASE_ROADS: readonly RoadRow[] = [
  { name: "Basic Road", displayName: "Two-Lane Road", lanes: 6, widthMeters: 16, costPerCell: 40 },
  { name: "Gravel Road", displayName: "Gravel Road", lanes: 4, widthMeters: 16, costPerCell: 25 },
  ...decorated("Basic Road", "Two-Lane Road", 6, 16, 50),
  {
    name: "Basic Road Bicycle",
    displayName: "Two-Lane Road with Bicycle Lanes",
    lanes: 6,
    widthMeters: 16,
    costPerCell: 60,
    elevatedName: "Basic Road Elevated Bike",
  },
  {
    name: "Basic Road Tram",
    displayName: "Two-Lane Road with Tram Tracks",
    lanes: 6,
    widthMeters: 16,
    costPerCell: 80,
  },
  { name: "Oneway Road", displayName: "Two-Lane One-Way Road", lanes: 6, widthMeters: 16, costPerCell: 40 },
  ...decorated("Oneway Road", "Two-Lane One-Way Road", 6, 16, 50),
  { name: "Medium Road", displayName: "Four-Lane Road", lanes: 8, widthMeters: 32, costPerCell: 60 },
  ...decorated("Medium Road", "Four-Lane Road", 6, 32, 70),
  ...["Bicycle", "Bus", "Tram"].map((kind) => variant("Medium Road", "Four-Lane Road", kind, 8, 32, 80)),
  { name: "Large Road", displayName: "Six-Lane Road", lanes: 10, widthMeters: 32, costPerCell: 80 },
  ...decorated("Large Road", "Six-Lane Road", 8, 32, 90),
  ...["Bicycle", "Bus"].map((kind) => variant("Large Road", "Six-Lane Road", kind, 10, 32, 100)),
  { name: "Large Oneway", displayName: "Six-Lane One-Way Road", lanes: 10, widthMeters: 32, costPerCell: 80 },
  ...decorated("Large Oneway", "Six-Lane One-Way Road", 8, 32, 90),
  { name: "Highway", displayName: "Highway", lanes: 3, widthMeters: 24, costPerCell: 80, highway: true },
  {
    name: "Highway Barrier",
    displayName: "Highway with Sound Barrier",
    lanes: 3,
    widthMeters: 24,
    costPerCell: 100,
    highway: true,
  },
  {
    name: "HighwayRamp",
    displayName: "Highway Ramp",
    lanes: 1,
    widthMeters: 16,
    costPerCell: 60,
    highway: true,
    elevatedName: "HighwayRampElevated",
  },
];

const ELEVATIONS = [
  { elevation: "elevated", suffix: "Elevated", costFactor: 3 },
  { elevation: "bridge", suffix: "Bridge", costFactor: 4 },
  { elevation: "slope", suffix: "Slope", costFactor: 5 },
  { elevation: "tunnel", suffix: "Tunnel", costFactor: 5 },
] as const;

const OTHER_NETWORKS: readonly SimNetworkPrefab[] = [
  other("Water Pipe", "Water", "None", "water", 4, 0, 15),
  other("Heating Pipe", "Water", "None", "heat", 4, 0, 15),
  other("Power Line", "Electricity", "None", "power", 4, 0, 18),
  other("Pedestrian Pavement", "Beautification", "BeautificationParks", "other", 4, 1, 10),
  other("Pedestrian Gravel", "Beautification", "BeautificationParks", "other", 4, 1, 10),
  {
    ...other("Pedestrian Elevated", "Beautification", "BeautificationParks", "other", 4, 1, 30),
    elevation: "elevated",
  },
  other("Train Track", "PublicTransport", "PublicTransportTrain", "other", 16, 2, 60),
  {
    ...other("Train Track Elevated", "PublicTransport", "PublicTransportTrain", "other", 16, 2, 180),
    elevation: "elevated",
  },
  {
    ...other("Train Track Bridge", "PublicTransport", "PublicTransportTrain", "other", 16, 2, 240),
    elevation: "bridge",
  },
  {
    ...other("Metro Track", "PublicTransport", "PublicTransportMetro", "other", 16, 2, 60),
    elevation: "tunnel",
  },
];

/** Every network prefab, in load order: ground roads, their raised and sunken variants, then the rest. */
export const NETWORK_PREFABS: readonly SimNetworkPrefab[] = [
  ...BASE_ROADS.map((row) => road(row, "ground", row.name, 1)),
  ...BASE_ROADS.flatMap((row) =>
    ELEVATIONS.map(({ elevation, suffix, costFactor }) => {
      const irregular = elevation === "elevated" ? row.elevatedName : undefined;
      return road(row, elevation, irregular ?? `${row.name} ${suffix}`, costFactor);
    }),
  ),
  ...OTHER_NETWORKS,
];

const BY_NAME = new Map(NETWORK_PREFABS.map((prefab) => [prefab.name, prefab]));

export function findNetworkPrefab(name: string): SimNetworkPrefab | undefined {
  return BY_NAME.get(name);
}

function road(
  row: RoadRow,
  elevation: NetworkPrefab["elevation"],
  name: string,
  costFactor: number,
): SimNetworkPrefab {
  const onGround = elevation === "ground" && !row.highway;
  return {
    name,
    displayName: row.displayName,
    service: "Road",
    subService: "None",
    elevation,
    widthMeters: row.widthMeters,
    lanes: row.lanes,
    zoning: onGround,
    carries: "traffic",
    frontage: onGround,
    costPerCell: row.costPerCell * costFactor,
  };
}

function other(
  name: string,
  service: Service,
  subService: SubService,
  carries: SimNetworkPrefab["carries"],
  widthMeters: number,
  lanes: number,
  costPerCell: number,
): SimNetworkPrefab {
  return {
    name,
    displayName: name,
    service,
    subService,
    elevation: "ground",
    widthMeters,
    lanes,
    zoning: false,
    carries,
    frontage: false,
    costPerCell,
  };
}

function variant(
  name: string,
  displayName: string,
  kind: string,
  lanes: number,
  widthMeters: number,
  costPerCell: number,
): RoadRow {
  const words: Record<string, string> = { Bicycle: "Bicycle Lanes", Bus: "Bus Lanes", Tram: "Tram Tracks" };
  return {
    name: `${name} ${kind}`,
    displayName: `${displayName} with ${words[kind]}`,
    lanes,
    widthMeters,
    costPerCell,
  };
}

function decorated(
  name: string,
  displayName: string,
  lanes: number,
  widthMeters: number,
  costPerCell: number,
): RoadRow[] {
  return ["Grass", "Trees"].map((plants) => ({
    name: `${name} Decoration ${plants}`,
    displayName: `${displayName} with ${plants}`,
    lanes,
    widthMeters,
    costPerCell,
  }));
}
