/**
 * The game's own vocabulary: zones, services, levels, building flags and problem names, with the integers that
 * represent them in requests and responses. All of city/ uses these definitions.
 */

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

/** The words of these lines, in order. */
export function words<Line extends string>(...lines: readonly Line[]): readonly Words<Line>[] {
  return lines.join(" ").split(" ") as Words<Line>[];
}

/** Data layers of the map. */
export const LAYERS = words(
  "traffic power water landValue pollution happiness crime garbage health fire police education leisure",
);
export type Layer = (typeof LAYERS)[number];

/** Default name of a save. */
export const DEFAULT_SAVE_NAME = "AgentAutoSave";

/** Zone types of a cell; the position is the integer that cells, requests and responses use. */
export const ZONES = words(
  "Unzoned Distant ResidentialLow ResidentialHigh CommercialLow CommercialHigh Industrial Office",
);
export type Zone = (typeof ZONES)[number];

/** The zones that `set-zone` may paint. */
export const PAINTABLE_ZONES = ZONES.filter((zone) => zone !== "Distant");

/** Services in the game's order; the position is the wire integer. */
export const SERVICES = words(
  "None Residential Commercial Industrial Natural Vehicles Citizen Tourism Office Road Electricity Water",
  "Beautification Garbage HealthCare PoliceDepartment Education Monument FireDepartment PublicTransport",
  "Disaster PlayerIndustry PlayerEducation Museums VarsitySports Fishing ServicePoint Hotel",
);
export type Service = (typeof SERVICES)[number];

/** Sub-services; the position is the wire integer. Integers up to 9 are the game's own, larger ones are Carillon's. */
export const SUB_SERVICES = words(
  "None ResidentialLow ResidentialHigh CommercialLow CommercialHigh IndustrialGeneric IndustrialForestry",
  "IndustrialFarming IndustrialOil IndustrialOre PublicTransportBus PublicTransportMetro",
  "PublicTransportTrain PublicTransportShip PublicTransportPlane PublicTransportTaxi PublicTransportTram",
  "PublicTransportMonorail PublicTransportCableCar PublicTransportTrolleybus PublicTransportTours",
  "PublicTransportPost CommercialLeisure CommercialTourist CommercialEco CommercialWallToWall",
  "ResidentialLowEco ResidentialHighEco ResidentialWallToWall OfficeGeneric OfficeHightech",
  "OfficeWallToWall OfficeFinancial BeautificationParks",
);
export type SubService = (typeof SUB_SERVICES)[number];

/** Services of growable buildings; these are taxed. */
export const GROWABLE_SERVICES = ["Residential", "Commercial", "Industrial", "Office"] as const;
export type GrowableService = (typeof GROWABLE_SERVICES)[number];

/** Services of buildings that are placed, not grown. */
export const FACILITY_SERVICES = words(
  "Water Electricity Garbage HealthCare PoliceDepartment FireDepartment Education Disaster",
);

/** The twenty taxed sub-services, each with its service, in the order of the tax table. */
export const TAX_CLASSES = GROWABLE_SERVICES.flatMap((service) =>
  SUB_SERVICES.filter((name) => name.startsWith(service)).map((subService) => ({ service, subService })),
);

/** Sub-service that grows on each zone, in the order of the tax sliders. */
export const ZONE_GROWTH: Readonly<Partial<Record<Zone, (typeof TAX_CLASSES)[number]>>> = {
  ResidentialLow: { service: "Residential", subService: "ResidentialLow" },
  ResidentialHigh: { service: "Residential", subService: "ResidentialHigh" },
  CommercialLow: { service: "Commercial", subService: "CommercialLow" },
  CommercialHigh: { service: "Commercial", subService: "CommercialHigh" },
  Industrial: { service: "Industrial", subService: "IndustrialGeneric" },
  Office: { service: "Office", subService: "OfficeGeneric" },
};
export const SLIDER_SUB_SERVICES = Object.values(ZONE_GROWTH);

/** Zone on which buildings of this kind grow; Unzoned if there is none. */
export function zoneOf(prefab: { readonly service: Service; readonly subService: SubService }): Zone {
  return ZONE_BY_TERM.get(prefab.subService) ?? ZONE_BY_TERM.get(prefab.service) ?? "Unzoned";
}

/** Zone of each sub-service, and the first zone of each service. */
const ZONE_BY_TERM = new Map<Service | SubService, Zone>(
  ZONES.toReversed().flatMap((zone) => {
    const growth = ZONE_GROWTH[zone];
    return growth ? [[growth.service, zone] as const, [growth.subService, zone] as const] : [];
  }),
);

/** A building's level, 1 to 5; 0 if it has none (the game's `None`). */
export type Level = 0 | 1 | 2 | 3 | 4 | 5;
export const LEVELS = [1, 2, 3, 4, 5] as const;

/** `Level3` for 3, `None` for 0. */
export function levelName(level: Level): string {
  return level === 0 ? "None" : `Level${level}`;
}

/** Building flags; the position is the bit. Flag sets are printed in this order. */
const BUILDING_FLAGS = words(
  "Created Deleted Original CustomName Untouchable FixedHeight RateReduced HighDensity RoadAccessFailed",
  "Evacuating Completed Active Abandoned Demolishing ZonesUpdated Downgrading Collapsed Upgrading Hidden",
  "EventActive Flooded Filling Historical BurnedDown",
);
export type BuildingFlag = (typeof BUILDING_FLAGS)[number];

/** The mask of each building flag. */
export const FLAG = Object.fromEntries(BUILDING_FLAGS.map((flag, bit) => [flag, 1 << bit])) as Readonly<
  Record<BuildingFlag, number>
>;

/** The names in a flag mask, ascending by bit and separated by commas. */
export function flagText(flags: number): string {
  return BUILDING_FLAGS.filter((flag) => (flags & FLAG[flag]) !== 0).join(", ");
}

/** Problems of the first set; the position is the bit. Bits 62 and 63 are the severity markers. */
export const FIRST_PROBLEM_SET = words(
  "Electricity Water Sewage DirtyWater Garbage Death Crime Fire Noise Pollution RoadNotConnected",
  "ElectricityNotConnected WaterNotConnected HeatingNotConnected Heating Flood TaxesTooHigh LandValueLow",
  "TooFewServices NoWorkers NoEducatedWorkers NoCustomers NoGoods NoPlaceforGoods NoResources",
  "NoInputProducts NoNaturalResources NoFood NoFuel NoPark NoMainGate NotInIndustryArea WrongAreaType",
  "ResourceNotSelected TurnedOff LandfillFull Emptying EmptyingFinished Evacuating StructureDamaged",
  "StructureVisited StructureVisitedService Snow TooLong LineNotConnected PathNotConnected",
  "TrackNotConnected DepotNotConnected NoFishingGoods NoPlaceForFishingGoods WasteTransferFacilityFull",
);

/** Problems of the second set; the position is the bit. */
export const SECOND_PROBLEM_SET = words(
  "NotInPedestrianZone CannotBeReached NoCargoServicePoint NoGarbageServicePoint",
);

export type ProblemName = (typeof FIRST_PROBLEM_SET)[number] | (typeof SECOND_PROBLEM_SET)[number];

/** Severity of a problem: a warning, `MajorProblem` (bit 62 of set 1) or `FatalProblem` (bit 63). */
export type Severity = "warning" | "major" | "fatal";

const MAJOR_BIT = 1n << 62n;
const FATAL_BIT = 1n << 63n;

/** The two raw 64-bit masks of a set of problems, severity included (all zero for an empty set). */
export function problemMasks(names: readonly ProblemName[], severity: Severity): [bigint, bigint] {
  const first = maskOf(FIRST_PROBLEM_SET, names);
  const second = maskOf(SECOND_PROBLEM_SET, names);
  if (severity === "warning" || names.length === 0) return [first, second];
  return [first | (severity === "major" ? MAJOR_BIT : FATAL_BIT), second];
}

function maskOf(table: readonly string[], names: readonly string[]): bigint {
  return names.reduce((mask, name) => {
    const bit = table.indexOf(name);
    return bit < 0 ? mask : mask | (1n << BigInt(bit));
  }, 0n);
}
