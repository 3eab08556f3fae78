/**
 * Catalogue of all buildings, with the game's names. Contains buildings that commands place, and buildings that grow
 * on zones. Costs and capacities follow published values if there are any. The other properties are tuned.
 */
import { type GrowableService, type Level, type Service, type SubService, words } from "../../terms.js";

export interface BuildingPrefab {
  readonly name: string;
  readonly displayName: string;
  readonly service: Service;
  readonly subService: SubService;
  readonly level: Level;
  /** Width of the footprint along the road, in cells of 8 m. */
  readonly width: number;
  /** Length of the footprint away from the road, in cells. */
  readonly length: number;
  /** Whether the building is a broken asset of the game, `Block Services - ...`. Never placed or listed. */
  readonly blocked: boolean;
  /** Whether the building is a pipe junction. Lists contain pipe junctions only on request. */
  readonly helper: boolean;
  /** Capacities and density of a growable; null for other buildings. */
  readonly growable: GrowableClass | null;
  /** Output, coverage and needs of a civic building; null for other buildings. */
  readonly civic: CivicProperties | null;
  /** Price of placing the building by command. Buildings that grow on zones are free. */
  readonly cost: number;
  readonly upkeepPerWeek: number;
}

/** Places per cell in hundredths, one value per level, without `buildingCapacities`' random part. */
interface GrowableClass {
  readonly homes: readonly number[];
  readonly jobs: readonly number[];
  readonly visitors: readonly number[];
  readonly highDensity: boolean;
}

/** Services that cover the buildings around their providers. */
export const COVERAGES = words("garbage health death police fire elementary highSchool university leisure");
export type Coverage = (typeof COVERAGES)[number];
/** Services that reach buildings by road. People walk to parks instead. */
export const ROAD_COVERAGES = COVERAGES.filter((kind) => kind !== "leisure");

export interface CivicProperties {
  /** Maximum electric output. */
  readonly powerKw?: number;
  /** Whether the output depends on the wind. */
  readonly wind?: boolean;
  /** Water that the building pumps per week. */
  readonly waterM3?: number;
  /** Sewage that the building treats or drains per week. */
  readonly sewageM3?: number;
  /** Heat that the building feeds into heating pipes. */
  readonly heatKw?: number;
  /** Works only beside or in water. */
  readonly shore?: boolean;
  readonly coverage?: { readonly kind: Coverage; readonly radiusMeters: number; readonly capacity: number };
  /** Storage capacity: the number of graves, or garbage in the unit of a building's `garbage`. */
  readonly storage?: number;
  /** Needs fuel delivered by road. */
  readonly burnsFuel?: boolean;
  /** Ground pollution at the building, 0 to 100. */
  readonly pollution?: number;
  /** Works without a road. */
  readonly roadless?: boolean;
  readonly jobs?: number;
}

/** Width along the road and length away from it, in cells. */
type Size = `${number}x${number}`;

type Role = CivicProperties & Partial<Pick<BuildingPrefab, "subService" | "level" | "helper" | "blocked">>;

/** Properties of a civic building. `names` is the prefab name, or "PREFAB NAME = DISPLAY NAME". */
type CivicRow = readonly [names: string, footprint: Size, cost: number, upkeep: number, role: Role];

/** Properties of buildings that need a shore but no road. */
const SHORE = { shore: true, roadless: true };

const CIVIC_ROWS: Partial<Record<Service, readonly CivicRow[]>> = {
  Electricity: [
    ["Wind Turbine", "2x2", 6_000, 80, { powerKw: 8_000, wind: true, roadless: true }],
    ["Advanced Wind Turbine", "2x2", 12_000, 200, { powerKw: 20_000, wind: true, roadless: true }],
    ["Coal Power Plant", "9x6", 19_000, 560, { powerKw: 40_000, burnsFuel: true, pollution: 80, jobs: 20 }],
    ["Oil Power Plant", "8x8", 50_000, 1_920, { powerKw: 120_000, burnsFuel: true, pollution: 60, jobs: 30 }],
    ["Solar Power Plant", "12x12", 80_000, 1_200, { powerKw: 160_000, jobs: 15 }],
    ["Nuclear Power Plant", "16x14", 200_000, 8_000, { powerKw: 640_000, jobs: 100 }],
    ["Dam Power House = Hydro Power Plant", "4x4", 100_000, 3_200, { powerKw: 80_000, ...SHORE }],
    ["Fusion Power Plant", "16x16", 1_000_000, 16_000, { powerKw: 16_000_000, jobs: 100 }],
    ["Electricity Pole", "1x1", 40, 0, { roadless: true }],
  ],
  Water: [
    ["Water Intake = Water Pumping Station", "3x3", 2_500, 160, { waterM3: 120_000, ...SHORE }],
    ["Water Tower", "2x2", 3_500, 80, { waterM3: 60_000, roadless: true }],
    ["Water Outlet = Water Drain Pipe", "3x3", 2_500, 320, { sewageM3: 120_000, pollution: 60, ...SHORE }],
    [
      "Water Treatment Plant",
      "6x6",
      10_000,
      640,
      { sewageM3: 160_000, shore: true, pollution: 15, jobs: 10 },
    ],
    [
      "Inland Water Treatment Plant 01 = Inland Water Treatment Plant",
      "5x7",
      20_000,
      240,
      { sewageM3: 80_000, pollution: 10, jobs: 10 },
    ],
    ["Boiler Station", "4x4", 10_000, 400, { heatKw: 40_000, pollution: 20, jobs: 8 }],
    ["Water Pipe Junction", "1x1", 0, 0, { roadless: true, helper: true }],
    ["Heating Pipe Junction", "1x1", 0, 0, { roadless: true, helper: true }],
  ],
  Garbage: [
    [
      "Landfill Site",
      "12x8",
      4_000,
      400,
      { ...covers("garbage", 1_500, 6_000, 15), storage: 200_000, pollution: 70 },
    ],
    [
      "Combustion Plant = Incineration Plant",
      "6x8",
      30_000,
      1_440,
      { ...covers("garbage", 2_000, 12_000, 20), powerKw: 12_000, pollution: 50 },
    ],
  ],
  HealthCare: [
    ["Medical Clinic", "5x4", 10_000, 400, covers("health", 900, 100, 10)],
    ["Hospital", "8x8", 65_000, 2_400, covers("health", 1_800, 500, 50)],
    ["Cemetery", "8x8", 8_000, 160, { ...covers("death", 1_500, 60, 8), storage: 3_000 }],
    ["Crematory = Crematorium", "5x5", 25_000, 720, covers("death", 1_500, 105, 10)],
    ["Medical Center", "14x12", 500_000, 6_000, covers("health", 9_000, 5_000, 100)],
  ],
  FireDepartment: [
    ["Fire House", "4x4", 12_000, 560, covers("fire", 900, 300, 10)],
    ["Fire Station", "6x6", 60_000, 1_440, covers("fire", 1_600, 1_250, 25)],
  ],
  PoliceDepartment: [
    ["Police Station", "5x5", 15_000, 600, covers("police", 1_000, 500, 20)],
    ["Police Headquarters", "8x8", 65_000, 2_400, covers("police", 2_000, 1_500, 50)],
    ["711884134.Koban Police Box_Data = Koban", "2x2", 5_000, 200, covers("police", 500, 150, 4)],
  ],
  Education: [
    ["Elementary School", "6x4", 10_000, 160, covers("elementary", 1_000, 300, 15)],
    ["High School", "6x5", 24_000, 560, { ...covers("highSchool", 1_800, 1_000, 30), level: 2 }],
    ["University", "10x10", 75_000, 1_920, { ...covers("university", 4_000, 4_500, 60), level: 3 }],
    ["Hadron Collider", "14x11", 800_000, 9_600, covers("university", 9_000, 20_000, 100)],
  ],
  Beautification: [
    ["Regular Park = Small Park", "4x4", 3_000, 120, park(220)],
    ["Regular Plaza = Plaza with Trees", "4x4", 3_000, 120, park(220)],
    ["Regular Playground = Small Playground", "2x2", 1_500, 80, park(160)],
    ["Expensive Park = Large Park", "6x4", 8_000, 320, park(320)],
    ["Expensive Plaza = Plaza", "6x4", 8_000, 320, park(320)],
    ["Expensive Playground = Large Playground", "4x4", 4_500, 200, park(240)],
    ["JapaneseGarden = Japanese Garden", "4x4", 7_000, 300, park(320)],
    ["Tropical Garden", "4x4", 7_000, 300, park(320)],
    ["Botanical garden = Botanical Garden", "6x6", 10_000, 400, park(400)],
    ["Basketball Court", "3x3", 2_500, 100, park(180)],
    ["MerryGoRound = Carousel Park", "4x4", 6_000, 240, park(300)],
  ],
  PublicTransport: [
    ["Bus Depot", "6x6", 40_000, 400, stop("PublicTransportBus")],
    ["Metro Entrance = Metro Station", "3x2", 15_000, 300, stop("PublicTransportMetro")],
    ["Train Station", "14x6", 65_000, 800, stop("PublicTransportTrain")],
    ["Cargo Center = Cargo Train Terminal", "14x8", 60_000, 800, stop("PublicTransportTrain")],
    ["Harbor", "16x10", 60_000, 960, stop("PublicTransportShip")],
    ["Cargo Harbor", "16x12", 60_000, 960, stop("PublicTransportShip")],
    ["Airport", "16x16", 150_000, 4_800, stop("PublicTransportPlane")],
  ],
  Monument: listOf(
    "Statue of Industry, StatueOfWealth = Statue of Wealth, Lazaret Plaza, Statue of Shopping, Plaza of the Dead, " +
      "Fountain of LifeDeath = Fountain of Life and Death, Friendly Neighborhood, Transport Tower, Trash Mall, " +
      "Posh Mall, Colossal Offices, Official Park, Court House, Grand Mall, City Hall, Business Park, Library, " +
      "Observatory, Opera House, Oppression Office, ScienceCenter = Science Center, Servicing Services, " +
      "SeaWorld = Sea World, ExpoCenter = Expo Center, High Interest Tower, Cathedral of Plentitude, Stadium, " +
      "Modern Art Museum, SeaAndSky Scraper = Sea and Sky Scraper, Theater of Wonders, Space Elevator, Eden Project",
  ).map((name) => [name, "8x8", 80_000, 1_200, covers("leisure", 1_200, 4_000, 20)]),
};

const BLOCKED_NAMES = "Block Services - Utility Yard_Data = Block Services - Utility Yard";
/** Represents the game's broken assets `Block Services - ...`, which are never listed or placed. */
export const BROKEN_ASSET_PREFAB = civic("Water", [BLOCKED_NAMES, "4x4", 0, 0, { blocked: true }]);

const CIVIC_PREFABS = Object.entries(CIVIC_ROWS).flatMap(([service, rows]) =>
  rows.map((row) => civic(service as Service, row)),
);

function civic(service: Service, [names, footprint, cost, upkeepPerWeek, role]: CivicRow): BuildingPrefab {
  const [name = names, displayName = name] = names.split(" = ");
  const [width, length] = footprint.split("x").map(Number) as [number, number];
  const { subService = "None", level = 1, blocked = false, helper = false, ...work } = role;
  const kind = { name, displayName, service, subService, level, width, length, blocked, helper };
  return { ...kind, growable: null, civic: work, cost, upkeepPerWeek };
}

function covers(kind: Coverage, radiusMeters: number, capacity: number, jobs = 0): CivicProperties {
  return { coverage: { kind, radiusMeters, capacity }, jobs };
}

function park(radiusMeters: number): Role {
  return { ...covers("leisure", radiusMeters, 600), roadless: true };
}

function stop(subService: SubService): Role {
  return { subService, jobs: 15 };
}

function listOf(names: string): string[] {
  return names.split(", ");
}

interface GrowableFamily extends Partial<Omit<GrowableClass, "highDensity">> {
  readonly highDensity: boolean;
  readonly service: GrowableService;
  readonly subService: SubService;
  /** Name endings, one per level, for prefabs that have no known name in the game. */
  readonly kinds: string;
  /** Display names of the prefabs, one per level. */
  readonly displayNames: string;
  /** Prefabs that have a known name in the game. Each name contains the level, the footprint and a name ending. */
  readonly known: string;
}

/**
 * Price per home and per job if a command places a residential or business building. The price is about three years
 * of the building's taxes. Buildings that grow by themselves are free.
 */
const HOME_WORTH = 1_000;
const JOB_WORTH = 400;

const LOT_SIZES = [1, 2, 3, 4].flatMap((width) => [1, 2, 3, 4].map((length) => `${width}x${length}`));

const FAMILIES: readonly GrowableFamily[] = [
  {
    service: "Residential",
    subService: "ResidentialLow",
    homes: [65, 70, 75, 80, 85],
    highDensity: false,
    kinds: "Detached01, Detached05, Semi-detachedhouse02, Villa02, Villa01",
    displayNames: "Small Home, Family Home, Semi-Detached House, Villa, Grand Villa",
    known:
      "L1 1x1 Detached, L1 2x2 Detached01, L1 2x2 Detached04, L1 2x3 Detached03, L1 3x3 Detached02, " +
      "L1 4x4 Detached02, L2 2x2 Detached05, L2 3x4 Semi-detachedhouse02a, L3 3x3 Semi-detachedhouse02, " +
      "L4 2x2 Villa02, L4 3x4 Villa01, L5 3x3 Villa01, L5 4x4 Villa03",
  },
  {
    service: "Residential",
    subService: "ResidentialHigh",
    homes: [60, 100, 130, 150, 160],
    highDensity: true,
    kinds: "Tenement05, Tenement06, Tenement08, Tenement09, Highrise05",
    displayNames: "Tenement, Apartment House, Apartment Block, Modern Apartments, High-Rise",
    known:
      "H1 1x1 Tenement, H1 2x2 Tenement05, H1 3x3 Tenement03, H2 3x4 Tenement06, H3 4x3 Tenement08, " +
      "H4 2x2 Tenement09, H5 3x4 Highrise05, H5 4x4 Highrise07",
  },
  {
    service: "Commercial",
    subService: "CommercialLow",
    jobs: [50, 75, 100],
    visitors: [90, 100, 110],
    highDensity: false,
    kinds: "Shop02, Shop04, Shop07",
    displayNames: "Corner Shop, Neighbourhood Store, Boutique",
    known:
      "L1 1x1 Shop, L1 2x2 Shop02, L1 3x3 Shop07, L2 2x2 Shop2, L2 3x4 Shop04, L3 1x1 Shop07, " +
      "L3 4x4 Shop07a",
  },
  {
    service: "Commercial",
    subService: "CommercialHigh",
    jobs: [75, 100, 125],
    visitors: [200, 300, 400],
    highDensity: true,
    kinds: "Shop01, Shop06, Shop11",
    displayNames: "Department Store, Shopping Arcade, Shopping Centre",
    known:
      "H1 1x1 Shop07, H1 2x2 Shop01, H1 4x4 Shop03, H2 2x2 Shop01, H2 4x4 Shop06, H3 2x2 Shop01, " +
      "H3 4x4 Shop11, H3 3x4 Hotel",
  },
  {
    service: "Industrial",
    subService: "IndustrialGeneric",
    jobs: [100, 150, 200],
    highDensity: true,
    kinds: "Sweatshop04, Bigfactory02, Mediumfactory06",
    displayNames: "Workshop, Factory, Modern Factory",
    known:
      "H1 1x1 Facility01, H1 2x2 Sweatshop03, H1 3x3 Sweatshop04, H1 4x4 Bigfactory01, H2 1x1 Facility03, " +
      "H2 2x2 sweatshop01, H2 4x4 Bigfactory02, H3 1x1 Facility05, H3 2x2 Bigfactory06, " +
      "H3 4x4 Mediumfactory06",
  },
  {
    service: "Office",
    subService: "OfficeGeneric",
    jobs: [50, 110, 170],
    highDensity: true,
    kinds: "Office02, Office06, Office12",
    displayNames: "Office, Office Block, Office Tower",
    known:
      "H1 1x1 Office, H1 2x2 Office02, H1 3x4 Office01, H2 2x2 Office04, H2 4x4 Office06, H3 2x2 Office11, " +
      "H3 4x4 Office12",
  },
];

/** Specialised industry: can be placed by command but never grows on zones (in the game it needs a district). */
const SPECIALISED: readonly (readonly [
  name: string,
  displayName: string,
  subService: SubService,
  width: number,
  length: number,
])[] = [
  ["Farming4x4", "Farm", "IndustrialFarming", 4, 4],
  ["Agricultural 2x2 processing 2", "Grain Mill", "IndustrialFarming", 2, 2],
  ["Forestry 3x3 Processing", "Sawmill", "IndustrialForestry", 3, 3],
  ["Oil 3x3 Extractor", "Oil Well", "IndustrialOil", 3, 3],
  ["Ore 2x2 Extractor", "Ore Mine", "IndustrialOre", 2, 2],
];

const INDUSTRY = FAMILIES.find((family) => family.service === "Industrial") as GrowableFamily;
const GROWN_PREFABS = FAMILIES.flatMap(familyPrefabs);

/** The whole catalogue, in load order. */
export const BUILDING_PREFABS: readonly BuildingPrefab[] = [
  ...CIVIC_PREFABS,
  BROKEN_ASSET_PREFAB,
  ...GROWN_PREFABS,
  ...SPECIALISED.map(([name, displayName, subService, width, length]) =>
    growable({ ...INDUSTRY, subService }, { name, displayName, level: 1, width, length }),
  ),
];

/** Longest side of any building. */
export const LARGEST_FOOTPRINT_CELLS = Math.max(
  ...BUILDING_PREFABS.flatMap(({ width, length }) => [width, length]),
);

const BY_NAME = new Map(BUILDING_PREFABS.map((prefab) => [prefab.name, prefab]));

export function findBuildingPrefab(name: string): BuildingPrefab | undefined {
  return BY_NAME.get(name);
}

const BY_LOT = new Map<string, BuildingPrefab[]>();
for (const prefab of GROWN_PREFABS) {
  const fitting = BY_LOT.get(lotKey(prefab));
  if (fitting) fitting.push(prefab);
  else BY_LOT.set(lotKey(prefab), [prefab]);
}

/** Growables of a sub-service and level that fill a lot exactly; empty if the sub-service has no such level. */
export function growablesFor(
  subService: SubService,
  level: number,
  width: number,
  length: number,
): readonly BuildingPrefab[] {
  return BY_LOT.get(lotKey({ subService, level, width, length })) ?? [];
}

type Lot = Record<"level" | "width" | "length", number> & { readonly subService: SubService };

function lotKey({ subService, level, width, length }: Lot): string {
  return `${subService} ${level} ${width}x${length}`;
}

/**
 * Returns the prefabs of a family: one for every level and every size from 1x1 to 4x4. Names that are unknown follow
 * the pattern of the game's own names.
 */
function familyPrefabs(family: GrowableFamily): BuildingPrefab[] {
  const displayNames = listOf(family.displayNames);
  const make = (name: string) => {
    const [level, width, length] = [Number(name[1]), Number(name[3]), Number(name[5])];
    const displayName = displayNames[level - 1] as string;
    return growable(family, { name, displayName, level: level as Level, width, length });
  };
  const known = listOf(family.known).map(make);
  const named = new Set(known.map(lotKey));
  const patterned = listOf(family.kinds).flatMap((kind, index) =>
    LOT_SIZES.map((size) => make(`${family.highDensity ? "H" : "L"}${index + 1} ${size} ${kind}`)),
  );
  return [...known, ...patterned.filter((prefab) => !named.has(lotKey(prefab)))];
}

function growable(
  { service, subService, homes = [], jobs = [], visitors = [], highDensity }: GrowableFamily,
  { name, displayName, ...size }: Pick<BuildingPrefab, "name" | "displayName" | "level" | "width" | "length">,
): BuildingPrefab {
  const kind = { name, displayName, service, subService, ...size, blocked: false, helper: false };
  const places = { homes, jobs, visitors, highDensity };
  const perCell = (homes[size.level - 1] ?? 0) * HOME_WORTH + (jobs[size.level - 1] ?? 0) * JOB_WORTH;
  const cost = (size.width * size.length * perCell) / 100;
  return { ...kind, growable: places, civic: null, cost, upkeepPerWeek: 0 };
}
