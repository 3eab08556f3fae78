/**
 * What a city offers to the bridge: reads of one consistent state, and commands applied one after another.
 *
 * Everything is in the game's terms; nothing here knows HTTP, JSON or wire names. The embedded city
 * (`simulation/`) implements it. A running game (`live/`) does not: its bridge already speaks HTTP, so the routes
 * forward to it byte for byte before they ever reach a `City`.
 *
 * Consistency: a city changes only in two ways, a simulation step or `apply`, and both run to their end within one
 * turn of the event loop. Whatever a caller reads without awaiting in between is therefore one snapshot, and
 * commands are serial by construction. Objects handed out are the city's own: read them, never keep them across an
 * await, never change them.
 *
 * Units: metres on the ground plane x (east), z (north), height y; angles in degrees, not normalised.
 */
import type {
  BuildGrid,
  BuildGridResult,
  BuildNeighborhood,
  BuildNeighborhoodResult,
  BulldozeArea,
  BulldozeAreaResult,
  Connect,
  ConnectResult,
} from "./composites.js";
import type {
  BuildingFlag,
  GroundPoint,
  GrowableService,
  Layer,
  Level,
  ProblemName,
  Service,
  Severity,
  SubService,
} from "./terms.js";

export type { GroundPoint } from "./terms.js";

export interface Position extends GroundPoint {
  readonly y: number;
}

/** The process holds at most one city. */
export interface Game {
  /** The loaded city, or null while none is loaded. Ask anew per request: loading replaces it. */
  readonly city: City | null;

  /**
   * The saves on disk, newest first. Only whole files appear: a save under way is not listed.
   * @throws nothing for a missing directory, which is an empty list
   */
  listSaves(): Promise<SaveDirectory>;

  /** Calls back with the new city after a load and with null after an unload. Returns the unsubscriber. */
  onCityChanged(listener: (city: City | null) => void): () => void;
}

/** One loaded city. All lists are in ascending id order. */
export interface City {
  readonly clock: ClockState;
  /** Counts construction: +1 per node, +2 per segment, +1 per building created. */
  readonly buildIndex: number;
  readonly citizenCount: number;
  /** Lanes of all segments together. */
  readonly laneCount: number;
  readonly demand: Demand;
  /** Rises whenever a node or segment appears, disappears or moves: a key for caching what is derived from them. */
  readonly networkRevision: number;
  /** Rises whenever a zone block appears, disappears or is painted. */
  readonly zoneRevision: number;
  /** Rises with `networkRevision`, and whenever the cars on the roads have been counted anew. */
  readonly trafficRevision: number;

  nodes(): readonly NetNode[];
  node(id: number): NetNode | undefined;
  segments(): readonly NetSegment[];
  segment(id: number): NetSegment | undefined;
  /**
   * Segments carrying the same that a segment crosses without a node in common: nothing passes from one to the other.
   */
  crossings(segmentId: number): number[];
  zoneBlocks(): readonly ZoneBlock[];
  zoneBlock(id: number): ZoneBlock | undefined;
  buildings(): readonly Building[];
  building(id: number): Building | undefined;
  /** Recent messages, oldest first; at most 100. */
  messages(): readonly Message[];
  /** The tax rate in percent, 0 to 29, of a taxed sub-service at a level 1 to 5. */
  taxRate(subService: SubService, level: Level): number;

  /** Money: what came in and went out, week by week, and what is owed. */
  readonly budget: Budget;
  /** The course of the city, a row at the end of each week, oldest first; at most ten years. */
  statistics(): readonly StatisticsSample[];
  /** What each connected network of power, water, drains and heat gave and was asked for in its last round. */
  utilities(): readonly UtilityNetwork[];
  /** A value for each part of the city where something has grown. */
  layer(layer: Layer): LayerValues;
  /** How each service reaches a place. */
  coverage(place: GroundPoint): readonly ServiceCoverage[];
  /** What drives on a segment; undefined for one that is no road. */
  traffic(segmentId: number): SegmentTraffic | undefined;
  /** What goes on inside a building; undefined for an id that no building has. */
  buildingDetails(id: number): BuildingDetails | undefined;

  /** The tiles of the map that a city can own, row by row from the south-west. */
  areas(): readonly MapArea[];

  /** Loaded prefabs in load order, the blocked ones included. */
  networkPrefabs(): readonly NetworkPrefab[];
  buildingPrefabs(): readonly BuildingPrefab[];

  /** The map reaches this far from the origin in x and z, both ways. */
  readonly mapHalfMeters: number;
  /** Height of the ground in metres. Outside the map the edge value continues. */
  groundHeight(x: number, z: number): number;
  /** Height of the ground, or of the water surface where that is higher. */
  surfaceHeight(x: number, z: number): number;

  /** Resolves while no save copies the city: a command then holds up nobody for the rest of the copy. */
  settled(): Promise<void>;

  /**
   * Applies one command, or with `dryRun` only validates it and reports what it would do; a dry run changes
   * nothing at all.
   * @throws CommandRefusedError when the city refuses; the city is then unchanged
   */
  apply<C extends Command>(command: C): CommandResults[C["type"]];
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

// --- Commands -------------------------------------------------------------------------------------------------------

/**
 * Everything that can be asked of a city, as plain data. Fields are complete: whoever parses a request fills in its
 * defaults. The city checks what only a city can know and what would harm it (ranges, ids, prefabs, limits).
 */
export type Command =
  | BuildNetwork
  | SetZone
  | RepairZonesToGrowables
  | RepairZoneClusters
  | PlaceBuilding
  | MoveBuilding
  | SetBuildingActive
  | SetBuildingEmptying
  | DisableBlockedAssets
  | Bulldoze
  | Save
  | SetSimulationSpeed
  | SetTaxRate
  | TakeLoan
  | UnlockArea
  | BuildGrid
  | Connect
  | BuildNeighborhood
  | BulldozeArea;

export interface CommandResults {
  "build-network": BuildNetworkResult;
  "set-zone": SetZoneResult;
  "repair-zones-to-growables": RepairZonesToGrowablesResult;
  "repair-zone-clusters": RepairZoneClustersResult;
  "place-building": PlaceBuildingResult;
  "move-building": MoveBuildingResult;
  "set-building-active": SetBuildingActiveResult;
  "set-building-emptying": SetBuildingActiveResult;
  "disable-blocked-assets": DisableBlockedAssetsResult;
  bulldoze: BulldozeResult;
  save: SaveResult;
  "set-simulation-speed": ClockState;
  "set-tax-rate": SetTaxRateResult;
  "take-loan": TakeLoanResult;
  "unlock-area": UnlockAreaResult;
  "build-grid": BuildGridResult;
  connect: ConnectResult;
  "build-neighborhood": BuildNeighborhoodResult;
  "bulldoze-area": BulldozeAreaResult;
}

/** One straight segment; an end near a compatible node uses that node, else a node is created. */
export interface BuildNetwork {
  readonly type: "build-network";
  readonly dryRun: boolean;
  readonly prefab: string;
  /** The heights as given count only for the length check (at least 4 m); the city samples its own. */
  readonly start: Position;
  readonly end: Position;
  /** Empty for a generated name. */
  readonly name: string;
  /** How near a node must be, 0 to 64 m, the nearest first; null for 2 m, the lowest id first. */
  readonly snapDistance: number | null;
}

export interface BuildNetworkResult {
  /** Money. */
  readonly cost: number;
  readonly reusedStartNode: boolean;
  readonly reusedEndNode: boolean;
  /** Segments carrying the same that it crosses without a node in common: nothing passes from one to the other. */
  readonly crossedSegmentIds: readonly number[];
  /** Null on a dry run. */
  readonly built: {
    readonly segmentId: number;
    readonly startNodeId: number;
    readonly endNodeId: number;
  } | null;
}

export interface SetZone {
  readonly type: "set-zone";
  readonly dryRun: boolean;
  readonly preserveOccupied: boolean;
  /** One of PAINTABLE_ZONES; anything else is refused, after the radius is checked. */
  readonly zone: string;
  readonly center: GroundPoint;
  /** Metres, above 0 and at most 256. */
  readonly radius: number;
}

export interface SetZoneResult {
  /** Blocks within reach, skipped ones included. */
  readonly matchingBlocks: number;
  readonly skippedOccupiedBlocks: number;
  /** Cells whose zone really changed; 0 on a dry run. */
  readonly changedCells: number;
}

export interface RepairZonesToGrowables {
  readonly type: "repair-zones-to-growables";
  readonly dryRun: boolean;
}

export interface RepairZonesToGrowablesResult {
  readonly inspectedBlocks: number;
  readonly repairableBlocks: number;
  readonly skippedMixedUseBlocks: number;
  /** 0 on a dry run. */
  readonly changedCells: number;
}

export interface RepairZoneClusters {
  readonly type: "repair-zone-clusters";
  readonly dryRun: boolean;
  readonly includePatchy: boolean;
  readonly fillUnzoned: boolean;
  readonly preferGrowableZone: boolean;
  /** Metres; clamped to 24..160. */
  readonly gridSize: number;
  /** At least 1. */
  readonly minMinorityCells: number;
  /** At least 1. */
  readonly minUnzonedCells: number;
}

export interface RepairZoneClustersResult {
  /** As clamped. */
  readonly gridSize: number;
  readonly clusterCount: number;
  readonly repairableClusters: number;
  /** 0 on a dry run. */
  readonly repairedBlocks: number;
  /** 0 on a dry run. */
  readonly changedCells: number;
}

export interface PlaceBuilding {
  readonly type: "place-building";
  readonly dryRun: boolean;
  readonly prefab: string;
  readonly position: GroundPoint;
  readonly angleDegrees: number;
}

export interface PlaceBuildingResult {
  readonly prefab: BuildingPrefab;
  /** Money. */
  readonly cost: number;
  /** Null on a dry run. */
  readonly buildingId: number | null;
}

/** Builds the same prefab at the new place, then removes the old one; the id changes. */
export interface MoveBuilding {
  readonly type: "move-building";
  readonly dryRun: boolean;
  readonly id: number;
  readonly position: GroundPoint;
  /** Null keeps the present angle. */
  readonly angleDegrees: number | null;
}

export interface MoveBuildingResult {
  readonly prefab: BuildingPrefab;
  /** Null on a dry run. */
  readonly moved: { readonly newBuildingId: number; readonly position: Position } | null;
}

export interface SetBuildingActive {
  readonly type: "set-building-active";
  readonly id: number;
  readonly active: boolean;
}

/** Begins or ends taking out what lies in a landfill or cemetery; meanwhile it takes in nothing. */
export interface SetBuildingEmptying {
  readonly type: "set-building-emptying";
  readonly id: number;
  readonly emptying: boolean;
}

export interface SetBuildingActiveResult {
  readonly prefab: BuildingPrefab;
  readonly beforeFlags: readonly BuildingFlag[];
  readonly afterFlags: readonly BuildingFlag[];
}

export interface DisableBlockedAssets {
  readonly type: "disable-blocked-assets";
}

export interface DisableBlockedAssetsResult {
  readonly assets: readonly BlockedAsset[];
}

export interface BlockedAsset {
  readonly package: string;
  readonly name: string;
  readonly fullName: string;
  readonly path: string;
  readonly wasEnabled: boolean;
  readonly isEnabled: boolean;
}

export interface Bulldoze {
  readonly type: "bulldoze";
  readonly dryRun: boolean;
  /** `building`, `netSegment` or `netNode`; anything else is refused. */
  readonly entityType: string;
  readonly id: number;
  /** For a segment: leave end nodes that no segment uses any more. */
  readonly keepNodes: boolean;
}

export interface BulldozeResult {
  readonly entityType: string;
  readonly id: number;
}

/** Starts an ordinary save in the background. Refused while another is being written. */
export interface Save {
  readonly type: "save";
  /** As asked; blank means `AgentAutoSave`. */
  readonly name: string;
}

export interface SaveResult {
  /** As used for the file, unsafe characters replaced. */
  readonly saveName: string;
  /** Absolute path the file will have once it is whole. */
  readonly path: string;
}

export interface SetSimulationSpeed {
  readonly type: "set-simulation-speed";
  readonly paused: boolean;
  /** Truncated and clamped to 1..3. */
  readonly speed: number;
}

export interface SetTaxRate {
  readonly type: "set-tax-rate";
  readonly dryRun: boolean;
  /** Percent; truncated, then 0 to 29. */
  readonly rate: number;
  /** Null means all. A filter that matches nothing is refused. */
  readonly service: Service | null;
  readonly subService: SubService | null;
  /** 1 to 5, or null for all. */
  readonly level: Level | null;
}

export interface SetTaxRateResult {
  readonly rate: number;
  readonly rows: readonly TaxRow[];
}

export interface TaxRow {
  readonly service: GrowableService;
  readonly subService: SubService;
  readonly level: Level;
  readonly scope: "uiTaxSlider" | "aggregate" | "level";
  readonly before: number;
  /** Equals `before` on a dry run. */
  readonly after: number;
}

/** Takes the loan of a bank, or pays back at once what is left of it. */
export interface TakeLoan {
  readonly type: "take-loan";
  readonly dryRun: boolean;
  /** One of `Budget.loanOffers`. */
  readonly lender: string;
  readonly repay: boolean;
}

export interface TakeLoanResult {
  readonly offer: LoanOffer;
}

/** Buys an area by its tile, or the one that a place lies in where that is null. */
export interface UnlockArea {
  readonly type: "unlock-area";
  readonly dryRun: boolean;
  readonly tileX: number | null;
  readonly tileZ: number | null;
  readonly x: number;
  readonly z: number;
  readonly ignoreMaxAreaCount: boolean;
}

export interface UnlockAreaResult {
  /** With the price that was paid. */
  readonly area: MapArea;
  readonly maxAreaCount: number;
}

export type RefusalCode =
  | "unknown-prefab"
  | "blocked-prefab"
  | "unknown-id"
  | "unknown-entity-type"
  | "unknown-zone"
  | "bad-value"
  | "too-short"
  | "limit-reached"
  | "nothing-matched"
  | "not-enough-money"
  | "unknown-lender"
  | "bad-save-name"
  | "save-in-progress";

/** The city refuses a command. The message names the offending value and is fit to show to the client. */
export class CommandRefusedError extends Error {
  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message);
    this.name = "CommandRefusedError";
  }
}
