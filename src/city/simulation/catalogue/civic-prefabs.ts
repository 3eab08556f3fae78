/**
 * The buildings that a builder places: utilities, services, parks, transport and unique buildings, by their names in
 * the game. Costs and capacities follow the published values where there are any; footprints, ranges and the rest are
 * tuning.
 */
import type { Service, SubService } from "../../terms.js";
import type { Civic, Coverage, SimBuildingPrefab } from "./building-prefab.js";

type Extra = Partial<Pick<SimBuildingPrefab, "displayName" | "subService" | "level" | "helper" | "blocked">>;

/** Width along the road and length away from it, in cells. */
type Footprint = `${number}x${number}`;

const KOBAN = "711884134.Koban Police Box_Data";

const UTILITIES: readonly SimBuildingPrefab[] = [
  civic("Wind Turbine", "Electricity", "2x2", 6_000, 80, { powerKw: 8_000, wind: true, roadless: true }),
  civic("Advanced Wind Turbine", "Electricity", "2x2", 12_000, 200, {
    powerKw: 20_000,
    wind: true,
    roadless: true,
  }),
  civic("Coal Power Plant", "Electricity", "9x6", 19_000, 560, { powerKw: 40_000, pollution: 80, jobs: 20 }),
  civic("Oil Power Plant", "Electricity", "8x8", 50_000, 1_920, {
    powerKw: 120_000,
    pollution: 60,
    jobs: 30,
  }),
  civic("Solar Power Plant", "Electricity", "12x12", 80_000, 1_200, { powerKw: 160_000, jobs: 15 }),
  civic("Nuclear Power Plant", "Electricity", "16x14", 200_000, 8_000, { powerKw: 640_000, jobs: 100 }),
  civic(
    "Dam Power House",
    "Electricity",
    "4x4",
    100_000,
    3_200,
    { powerKw: 80_000, shore: true, roadless: true },
    { displayName: "Hydro Power Plant" },
  ),
  civic("Fusion Power Plant", "Electricity", "16x16", 1_000_000, 16_000, { powerKw: 16_000_000, jobs: 100 }),
  civic("Electricity Pole", "Electricity", "1x1", 0, 0, { roadless: true }),
  civic(
    "Water Intake",
    "Water",
    "3x3",
    2_500,
    160,
    { waterM3: 120_000, shore: true, roadless: true },
    { displayName: "Water Pumping Station" },
  ),
  civic("Water Tower", "Water", "2x2", 3_500, 160, { waterM3: 60_000, roadless: true }),
  civic(
    "Water Outlet",
    "Water",
    "3x3",
    2_500,
    320,
    { sewageM3: 120_000, shore: true, pollution: 60, roadless: true },
    { displayName: "Water Drain Pipe" },
  ),
  civic("Water Treatment Plant", "Water", "6x6", 10_000, 640, {
    sewageM3: 160_000,
    shore: true,
    pollution: 15,
    jobs: 10,
  }),
  civic(
    "Inland Water Treatment Plant 01",
    "Water",
    "5x7",
    20_000,
    800,
    { sewageM3: 80_000, pollution: 10, jobs: 10 },
    { displayName: "Inland Water Treatment Plant" },
  ),
  civic("Boiler Station", "Water", "4x4", 10_000, 400, { heatKw: 40_000, pollution: 20, jobs: 8 }),
  civic("Water Pipe Junction", "Water", "1x1", 0, 0, { roadless: true }, { helper: true }),
  civic("Heating Pipe Junction", "Water", "1x1", 0, 0, { roadless: true }, { helper: true }),
];

const SERVICES: readonly SimBuildingPrefab[] = [
  civic("Landfill Site", "Garbage", "12x8", 4_000, 400, {
    ...covers("garbage", 1_500, 6_000),
    pollution: 70,
    jobs: 15,
  }),
  civic(
    "Combustion Plant",
    "Garbage",
    "6x8",
    30_000,
    1_440,
    { ...covers("garbage", 2_000, 12_000), powerKw: 12_000, pollution: 50, jobs: 20 },
    { displayName: "Incineration Plant" },
  ),
  civic("Medical Clinic", "HealthCare", "5x4", 10_000, 400, covers("health", 900, 100, 10)),
  civic("Hospital", "HealthCare", "8x8", 65_000, 2_400, covers("health", 1_800, 500, 50)),
  civic("Cemetery", "HealthCare", "8x8", 8_000, 160, covers("death", 1_500, 60, 8)),
  civic("Crematory", "HealthCare", "5x5", 25_000, 720, covers("death", 1_500, 105, 10), {
    displayName: "Crematorium",
  }),
  civic("Medical Center", "HealthCare", "14x12", 500_000, 6_000, covers("health", 9_000, 5_000, 100)),
  civic("Fire House", "FireDepartment", "4x4", 12_000, 560, covers("fire", 900, 300, 10)),
  civic("Fire Station", "FireDepartment", "6x6", 60_000, 1_440, covers("fire", 1_600, 1_250, 25)),
  civic("Police Station", "PoliceDepartment", "5x5", 15_000, 600, covers("police", 1_000, 500, 20)),
  civic("Police Headquarters", "PoliceDepartment", "8x8", 65_000, 2_400, {
    ...covers("police", 2_000, 1_500, 50),
  }),
  civic(KOBAN, "PoliceDepartment", "2x2", 5_000, 200, covers("police", 500, 150, 4), {
    displayName: "Koban",
  }),
  civic("Elementary School", "Education", "6x4", 10_000, 160, covers("elementary", 1_000, 300, 15), {
    level: 1,
  }),
  civic("High School", "Education", "6x5", 24_000, 560, covers("highSchool", 1_800, 1_000, 30), { level: 2 }),
  civic("University", "Education", "10x10", 75_000, 1_920, covers("university", 4_000, 4_500, 60), {
    level: 3,
  }),
  civic("Hadron Collider", "Education", "14x11", 800_000, 9_600, {
    ...covers("university", 9_000, 20_000, 100),
  }),
];

const PARKS: readonly SimBuildingPrefab[] = [
  park("Regular Park", "Small Park", "4x4", 3_000, 120, 220),
  park("Regular Plaza", "Plaza with Trees", "4x4", 3_000, 120, 220),
  park("Regular Playground", "Small Playground", "2x2", 1_500, 80, 160),
  park("Expensive Park", "Large Park", "6x4", 8_000, 320, 320),
  park("Expensive Plaza", "Plaza", "6x4", 8_000, 320, 320),
  park("Expensive Playground", "Large Playground", "4x4", 4_500, 200, 240),
  park("JapaneseGarden", "Japanese Garden", "4x4", 7_000, 300, 320),
  park("Tropical Garden", "Tropical Garden", "4x4", 7_000, 300, 320),
  park("Botanical garden", "Botanical Garden", "6x6", 10_000, 400, 400),
  park("Basketball Court", "Basketball Court", "3x3", 2_500, 100, 180),
  park("MerryGoRound", "Carousel Park", "4x4", 6_000, 240, 300),
];

const TRANSPORT: readonly SimBuildingPrefab[] = [
  transport("Bus Depot", "Bus Depot", "PublicTransportBus", "6x6", 40_000, 400),
  transport("Metro Entrance", "Metro Station", "PublicTransportMetro", "3x2", 15_000, 300),
  transport("Train Station", "Train Station", "PublicTransportTrain", "14x6", 65_000, 800),
  transport("Cargo Center", "Cargo Train Terminal", "PublicTransportTrain", "14x8", 60_000, 800),
  transport("Harbor", "Harbor", "PublicTransportShip", "16x10", 60_000, 960),
  transport("Cargo Harbor", "Cargo Harbor", "PublicTransportShip", "16x12", 60_000, 960),
  transport("Airport", "Airport", "PublicTransportPlane", "16x16", 150_000, 4_800),
];

const MONUMENTS: readonly SimBuildingPrefab[] = [
  ...["Statue of Industry", "StatueOfWealth", "Lazaret Plaza", "Statue of Shopping", "Plaza of the Dead"],
  ...["Fountain of LifeDeath", "Friendly Neighborhood", "Transport Tower", "Trash Mall", "Posh Mall"],
  ...[
    "Colossal Offices",
    "Official Park",
    "Court House",
    "Grand Mall",
    "City Hall",
    "Business Park",
    "Library",
  ],
  ...["Observatory", "Opera House", "Oppression Office", "ScienceCenter", "Servicing Services", "SeaWorld"],
  ...["ExpoCenter", "High Interest Tower", "Cathedral of Plentitude", "Stadium", "Modern Art Museum"],
  ...["SeaAndSky Scraper", "Theater of Wonders", "Space Elevator", "Eden Project"],
].map((name) => civic(name, "Monument", "8x8", 80_000, 1_200, covers("leisure", 1_200, 4_000, 20)));

/** The one asset of the known broken family: listed nowhere, never placed, switched off on request. */
export const BLOCKED_PREFAB = civic(
  "Block Services - Utility Yard_Data",
  "Water",
  "4x4",
  0,
  0,
  {},
  { displayName: "Block Services - Utility Yard", blocked: true },
);

export const CIVIC_PREFABS: readonly SimBuildingPrefab[] = [
  ...UTILITIES,
  ...SERVICES,
  ...PARKS,
  ...TRANSPORT,
  ...MONUMENTS,
  BLOCKED_PREFAB,
];

function civic(
  name: string,
  service: Service,
  footprint: Footprint,
  cost: number,
  upkeepPerWeek: number,
  role: Civic,
  extra: Extra = {},
): SimBuildingPrefab {
  const [width, length] = footprint.split("x").map(Number) as [number, number];
  return {
    name,
    displayName: name,
    service,
    subService: "None",
    level: 1,
    width,
    length,
    blocked: false,
    helper: false,
    growable: null,
    civic: role,
    cost,
    upkeepPerWeek,
    ...extra,
  };
}

function covers(kind: Coverage, radiusMeters: number, capacity: number, jobs = 0): Civic {
  return { coverage: { kind, radiusMeters, capacity }, jobs };
}

function park(
  name: string,
  displayName: string,
  footprint: Footprint,
  cost: number,
  upkeepPerWeek: number,
  radiusMeters: number,
): SimBuildingPrefab {
  const role = { ...covers("leisure", radiusMeters, 600), roadless: true };
  return civic(name, "Beautification", footprint, cost, upkeepPerWeek, role, { displayName });
}

function transport(
  name: string,
  displayName: string,
  subService: SubService,
  footprint: Footprint,
  cost: number,
  upkeepPerWeek: number,
): SimBuildingPrefab {
  const extra = { displayName, subService };
  return civic(name, "PublicTransport", footprint, cost, upkeepPerWeek, { jobs: 15 }, extra);
}
