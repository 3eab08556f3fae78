/**
 * Read interface of a city: entities, money, statistics and utilities. Returned objects belong to the city: do not
 * change them, and do not keep them across an await.
 *
 * Units: metres on the ground plane x (east), z (north), height y; angles in degrees, not normalised.
 */
import type { GroundPoint, Level, ProblemName, Service, Severity, SubService } from "./terms.js";

export interface Position extends GroundPoint {
  readonly y: number;
}

export interface ClockState {
  /** Game time in milliseconds since 1970. The game has no time zone, so the time is read as UTC. */
  readonly gameTimeMs: number;
  readonly paused: boolean;
  /** Speed that the user chose, 1 to 3; kept while paused. */
  readonly selectedSpeed: number;
  /** Speed at which time passes: 0 while paused, else the selected speed. */
  readonly finalSpeed: number;
}

/** Amounts of money have at most two decimals. */
export interface Budget {
  /** Whether money is unlimited: no command is refused for lack of it. */
  readonly unlimited: boolean;
  readonly balance: number;
  readonly income: readonly BudgetLine[];
  readonly expenses: readonly BudgetLine[];
  readonly loans: readonly RunningLoan[];
  readonly loanOffers: readonly LoanOffer[];
  /** Accounts of the latest two years, oldest week first. */
  readonly history: readonly BudgetWeek[];
}

/** A line of the budget, such as taxes of shops, costs of schools, construction or loans. */
interface BudgetLine {
  readonly name: string;
  /** Amount in the current week so far. */
  readonly thisWeek: number;
  /** Amount in the last whole week. */
  readonly lastWeek: number;
  /** Amount since the city was founded. */
  readonly total: number;
}

export interface BudgetWeek {
  /** Game time at the end of the week. */
  readonly gameTimeMs: number;
  readonly balance: number;
  readonly income: number;
  readonly expenses: number;
}

export interface LoanOffer {
  readonly lender: string;
  readonly amount: number;
  readonly weeks: number;
  readonly weeklyPayment: number;
}

interface RunningLoan {
  readonly lender: string;
  readonly amount: number;
  readonly weeklyPayment: number;
  readonly weeksLeft: number;
}

/** Statistics of one week: the state at the end, and the numbers of events. Means and shares are 0 to 100. */
export interface StatisticsSample {
  readonly gameTimeMs: number;
  readonly citizens: number;
  readonly households: number;
  readonly homes: number;
  readonly jobs: number;
  readonly openJobs: number;
  readonly unemployed: number;
  /** Number of growables, including abandoned ones. */
  readonly growables: number;
  /** Number of abandoned growables. */
  readonly abandoned: number;
  readonly residentialDemand: number;
  readonly commercialDemand: number;
  readonly workplaceDemand: number;
  readonly happiness: number;
  readonly health: number;
  readonly landValue: number;
  readonly crime: number;
  readonly garbage: number;
  /** Share of the adults with a university degree. */
  readonly graduates: number;
  readonly births: number;
  readonly deaths: number;
  readonly arrivals: number;
  readonly departures: number;
  readonly balance: number;
  readonly income: number;
  readonly expenses: number;
}

/** A connected network as of its last update. Power and heat are in kW, water and sewage in m3 a week. */
export interface UtilityNetwork {
  readonly carries: "power" | "water" | "sewage" | "heat";
  readonly supply: number;
  readonly demand: number;
  readonly plantIds: readonly number[];
  readonly consumers: number;
  readonly unserved: number;
}

export interface LayerValues {
  /** Edge length of the layer's squares. */
  readonly cellMeters: number;
  /** Whether a higher value of the layer is better. */
  readonly isGood: boolean;
  /** Value of each square, 0 to 100, with the centre of the square. */
  readonly values: readonly { readonly x: number; readonly z: number; readonly value: number }[];
}

/** A service that some homes lack and that a town of this size expects or will expect soon. */
export interface MissingService {
  readonly service: string;
  /** From this population on, a town without the service grows more slowly. */
  readonly fromCitizens: number;
  /** Households without the service, estimated from a sample of the homes. */
  readonly householdsWithout: number;
  /** Points of happiness lost on average; 0 before the town expects the service. */
  readonly pointsLost: number;
  /** The most central home without the service. */
  readonly place: Position;
}

export interface ServiceCoverage {
  readonly service: string;
  /** Id of the building that serves the place, or 0. */
  readonly providerId: number;
  readonly distanceMeters: number | null;
  /** Quality from 0 (no service) to 1. A provider with more demand than capacity has a lower quality. */
  readonly quality: number;
}

/** A tile of the map. The city may build on tiles that it does not own. */
export interface MapArea {
  /** Column of the tile, 0 (west) to 4. */
  readonly tileX: number;
  /** Row of the tile, 0 (south) to 4. */
  readonly tileZ: number;
  readonly owned: boolean;
  /** Whether the tile borders an owned tile and the city may still buy tiles. */
  readonly purchasable: boolean;
  /** Price of the tile; 0 if it is owned. */
  readonly price: number;
  readonly bounds: {
    readonly minX: number;
    readonly maxX: number;
    readonly minZ: number;
    readonly maxZ: number;
  };
}

/** Traffic of a road at peak hour, both directions together. */
export interface SegmentTraffic {
  readonly volumePerHour: number;
  /** Vehicles per hour that can pass without much delay. */
  readonly capacityPerHour: number;
  readonly speedKmh: number;
  readonly freeSpeedKmh: number;
  /** Volume in percent of the capacity, at most 100. */
  readonly densityPercent: number;
}

/** Details of one building. Garbage, crime, health, happiness, land value and level progress are 0 to 100. */
export interface BuildingDetails {
  readonly homes: number;
  readonly households: number;
  readonly residents: number;
  readonly jobs: number;
  readonly workers: number;
  readonly visitorPlaces: number;
  readonly visitors: number;
  readonly goods: number;
  readonly garbage: number;
  /** Dead residents waiting for a hearse. */
  readonly bodies: number;
  readonly crime: number;
  readonly health: number;
  readonly happiness: number;
  readonly landValue: number;
  readonly levelProgress: number;
  /** Id of the road segment that gives access to the building, or 0. */
  readonly roadSegmentId: number;
  readonly connectedOutside: boolean;
  readonly power: boolean;
  readonly water: boolean;
  readonly sewage: boolean;
  readonly heat: boolean;
  /** For a service building: demand in the last cycle. */
  readonly load: number;
  /** For a service building: capacity per cycle. */
  readonly capacity: number;
  readonly taxRate: number | null;
  /**
   * Points of happiness by cause. Happiness is their sum, limited to 1 to 100. Null for buildings without
   * homes.
   */
  readonly happinessParts: Readonly<Record<string, number>> | null;
  /** Points of land value by cause. The land value moves towards the sum. Null for service buildings. */
  readonly landValueParts: Readonly<Record<string, number>> | null;
}

/** The three demand bars, integers 0 to 100. */
export interface Demand {
  readonly residential: number;
  readonly commercial: number;
  readonly workplace: number;
}

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
}

export interface BuildingPrefab {
  readonly name: string;
  readonly displayName: string;
  readonly service: Service;
  readonly subService: SubService;
  readonly level: Level;
  /** Width of the footprint along the road, in cells of 8 m. */
  readonly width: number;
  /** Length of the footprint away from the road, in cells of 8 m. */
  readonly length: number;
  /** Whether the building is a broken asset of the game, `Block Services - ...`. Never placed or listed. */
  readonly blocked: boolean;
  /** Whether the building is a pipe junction. Lists contain pipe junctions only on request. */
  readonly helper: boolean;
}

export interface Problems {
  /** Problem names in ascending bit order; empty without problems. */
  readonly names: readonly ProblemName[];
  readonly severity: Severity;
}

export interface NetNode {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  readonly position: Position;
  /** Whether the node connects to the world beyond the map edge. */
  readonly outside: boolean;
  readonly problems: Problems;
  readonly segmentIds: readonly number[];
}

export interface NetSegment {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  /** Name given by the client, or the generated name of a street; empty for other segments. */
  readonly name: string;
  readonly startNodeId: number;
  readonly endNodeId: number;
  /** Positions of the two nodes; a segment is straight. */
  readonly start: Position;
  readonly end: Position;
  readonly problems: Problems;
}

/** A strip of zoning cells along one side of a road, four columns deep. */
export interface ZoneBlock {
  readonly id: number;
  readonly segmentId: number;
  /** Position of the block as saves store it: on the edge of the strip that is away from the road. */
  readonly position: Position;
  /** Number of rows along the road, 1 to 8. A row has four cells. */
  readonly rows: number;
  /**
   * Zones of the cells, as indexes into ZONES. Cell (column, row) is at `row * 4 + column`. Column 0 touches the
   * road. Do not write to this array.
   */
  readonly cells: Readonly<Uint8Array>;
  /** Zone of all cells, possibly Unzoned; -1 if the cells have different zones. */
  readonly commonZone: number;
  /** Direction in radians. Columns follow each other along (cos, sin), and rows along (sin, -cos). */
  readonly angleRadians: number;
}

export interface Building {
  readonly id: number;
  readonly prefab: BuildingPrefab;
  /** Centre of the footprint. */
  readonly position: Position;
  readonly angleDegrees: number;
  /** Bit mask of BUILDING_FLAGS. */
  readonly flags: number;
  readonly problems: Problems;
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

interface GenericMessage extends MessageBase {
  readonly type: "GenericMessage";
  readonly senderId: 0;
  readonly senderKey: string;
  readonly randomId: number;
}

export type Message = CitizenMessage | GenericMessage;

export interface SaveDirectory {
  /** Absolute path of the directory of saves. */
  readonly directory: string;
  readonly saves: readonly SaveFile[];
}

export interface SaveFile {
  /** Name of the save: its file name without the extension. */
  readonly name: string;
  readonly path: string;
  /** Time of the last write, in milliseconds since 1970. */
  readonly lastWriteTimeMs: number;
  readonly lengthBytes: number;
}
