/**
 * What the bridge reads of a city: its entities, money, statistics and utilities. Values handed out belong to the city:
 * do not change them, and do not keep them across an await.
 *
 * Units: metres on the ground plane x (east), z (north), height y; angles in degrees, not normalised.
 */
import type { GroundPoint, Level, ProblemName, Service, Severity, SubService } from "./terms.js";

export type { GroundPoint } from "./terms.js";

export interface Position extends GroundPoint {
  readonly y: number;
}

export interface ClockState {
  /** Game time as milliseconds since 1970 read as UTC; the game has no time zone. */
  readonly gameTimeMs: number;
  readonly paused: boolean;
  /** 1 to 3, kept while paused. */
  readonly selectedSpeed: number;
  /** 0 while paused, else the selected speed. */
  readonly finalSpeed: number;
}

/** Money is in whole units with at most two decimals. */
export interface Budget {
  /** Nothing is refused for want of money. */
  readonly unlimited: boolean;
  readonly balance: number;
  readonly income: readonly BudgetLine[];
  readonly expenses: readonly BudgetLine[];
  readonly loans: readonly RunningLoan[];
  readonly loanOffers: readonly LoanOffer[];
  /** The latest two years, oldest first. */
  readonly history: readonly BudgetWeek[];
}

/** One reason why money moves: a taxed or civic service, construction, loans. */
export interface BudgetLine {
  readonly name: string;
  /** Since the present week began, in the last whole week, since the city began. */
  readonly thisWeek: number;
  readonly lastWeek: number;
  readonly total: number;
}

export interface BudgetWeek {
  /** The end of the week. */
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

export interface RunningLoan {
  readonly lender: string;
  readonly amount: number;
  readonly weeklyPayment: number;
  readonly weeksLeft: number;
}

/** Counts at the end of a week, and what happened in it. Means and shares are 0 to 100. */
export interface StatisticsSample {
  readonly gameTimeMs: number;
  readonly citizens: number;
  readonly households: number;
  readonly homes: number;
  readonly jobs: number;
  readonly openJobs: number;
  readonly unemployed: number;
  /** Growables that stand, and those of them that were given up. */
  readonly growables: number;
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

/** A connected network in its last round. Power and heat are in kW, water and sewage in m3 a week. */
export interface UtilityNetwork {
  readonly carries: "power" | "water" | "sewage" | "heat";
  readonly supply: number;
  readonly demand: number;
  readonly plantIds: readonly number[];
  readonly consumers: number;
  readonly unserved: number;
}

export interface LayerValues {
  /** Edge of the square that a value holds for. */
  readonly cellMeters: number;
  /** Whether more is better. */
  readonly isGood: boolean;
  /** The middle of each square, and 0 to 100. */
  readonly values: readonly { readonly x: number; readonly z: number; readonly value: number }[];
}

/** A service that a town of this size wishes for and too few homes have. */
export interface ServiceWish {
  readonly service: string;
  /** The population from which it costs growth. */
  readonly fromCitizens: number;
  /** Estimated from a sample of the homes. */
  readonly householdsWithout: number;
  /** Points of happiness that the town loses for it on average; 0 before the town expects it. */
  readonly pointsLost: number;
  /** The home that is nearest to the others without it. */
  readonly place: Position;
}

export interface ServiceCoverage {
  readonly service: string;
  /** Who serves the place; 0 for nobody. */
  readonly providerId: number;
  readonly distanceMeters: number | null;
  /** 0, not at all, to 1; less where more is asked of the provider than it can do. */
  readonly quality: number;
}

/** A tile of the map. The city builds wherever it likes; owning land is a matter of its growth. */
export interface MapArea {
  /** 0 to 4, from the west and from the south. */
  readonly tileX: number;
  readonly tileZ: number;
  readonly owned: boolean;
  /** Beside an owned one, while the city may have more. */
  readonly purchasable: boolean;
  /** Money; 0 for an owned one. */
  readonly price: number;
  readonly bounds: {
    readonly minX: number;
    readonly maxX: number;
    readonly minZ: number;
    readonly maxZ: number;
  };
}

/** The traffic of a road at the busiest time, both ways together. */
export interface SegmentTraffic {
  readonly volumePerHour: number;
  /** What passes without much delay. */
  readonly capacityPerHour: number;
  readonly speedKmh: number;
  readonly freeSpeedKmh: number;
  /** Volume in percent of the capacity, at most 100. */
  readonly densityPercent: number;
}

/** Gauges are 0 to 100. */
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
  readonly bodies: number;
  readonly crime: number;
  readonly health: number;
  readonly happiness: number;
  readonly landValue: number;
  readonly levelProgress: number;
  /** The road segment that it opens to; 0 for none. */
  readonly roadSegmentId: number;
  readonly connectedOutside: boolean;
  readonly power: boolean;
  readonly water: boolean;
  readonly sewage: boolean;
  readonly heat: boolean;
  /** For a service: what was asked of it in its last cycle, and what it can do in one. */
  readonly load: number;
  readonly capacity: number;
  readonly taxRate: number | null;
  /** Points by cause whose sum is the happiness, within 1 to 100; null for anything but homes. */
  readonly happinessParts: Readonly<Record<string, number>> | null;
  /** Points by cause whose sum the land value tends to; null for anything but growables. */
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
  /** Whether zone blocks arise along it. */
  readonly zoning: boolean;
}

export interface BuildingPrefab {
  readonly name: string;
  readonly displayName: string;
  readonly service: Service;
  readonly subService: SubService;
  readonly level: Level;
  /** Footprint in cells of 8 m: width along the road, length away from it. */
  readonly width: number;
  readonly length: number;
  /** Whether it is of the known broken family `Block Services - ...`: never placed, not listed to clients. */
  readonly blocked: boolean;
  /** A pipe junction, which clients see only when they ask for map objects. */
  readonly helper: boolean;
}

export interface Problems {
  /** In ascending bit order; empty when all is well. */
  readonly names: readonly ProblemName[];
  readonly severity: Severity;
}

export interface NetNode {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  readonly position: Position;
  /** A connection to the world beyond the map edge. */
  readonly outside: boolean;
  readonly problems: Problems;
  readonly segmentIds: readonly number[];
}

export interface NetSegment {
  readonly id: number;
  readonly prefab: NetworkPrefab;
  /** Given by the builder, else a generated street name for roads and empty for the rest. */
  readonly name: string;
  readonly startNodeId: number;
  readonly endNodeId: number;
  /** Where the two nodes are; a segment is straight. */
  readonly start: Position;
  readonly end: Position;
  readonly problems: Problems;
}

/** A strip of zoning cells along one side of a road, four cells deep. */
export interface ZoneBlock {
  readonly id: number;
  readonly segmentId: number;
  /** The stored position, on the far edge of the strip (not its centre). */
  readonly position: Position;
  /** Rows along the road, 1 to 8. The block counts `rows * 4` cells. */
  readonly rows: number;
  /** Zone value (index into ZONES) of cell (column, row) at `row * 4 + column`; column 0 touches the road. Never written to. */
  readonly cells: Readonly<Uint8Array>;
  /** The zone of all cells, Unzoned or not; -1 where they differ. */
  readonly commonZone: number;
  /** Block direction in radians: cells advance along the depth by (cos, sin) and along the road by (sin, -cos). */
  readonly angleRadians: number;
}

export interface Building {
  readonly id: number;
  readonly prefab: BuildingPrefab;
  /** Centre of the footprint. */
  readonly position: Position;
  readonly angleDegrees: number;
  /** Mask over BUILDING_FLAGS. */
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

export interface GenericMessage extends MessageBase {
  readonly type: "GenericMessage";
  readonly senderId: 0;
  readonly senderKey: string;
  readonly randomId: number;
}

export type Message = CitizenMessage | GenericMessage;

export interface SaveDirectory {
  /** Absolute path. */
  readonly directory: string;
  readonly saves: readonly SaveFile[];
}

export interface SaveFile {
  /** File name without the extension. */
  readonly name: string;
  readonly path: string;
  /** Milliseconds since 1970, UTC. */
  readonly lastWriteTimeMs: number;
  readonly lengthBytes: number;
}
