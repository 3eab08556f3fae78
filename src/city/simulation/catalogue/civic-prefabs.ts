/**
 * The buildings that a builder places: utilities, services, parks, transport and unique buildings, by their names in
 * the game. Costs and capacities follow the published values where there are any; footprints, ranges and the rest are
 * tuning.
 */
import type { Service, SubService } from "../../terms.js";
import type { Civic, Coverage, SimBuildingPrefab } from "./building-prefab.js";

type Extra = Partial<Pick<SimBuildingPrefab, "subService" | "level" | "helper" | "blocked">>;

const KOBAN = "711884134.Koban Police Box_Data";

const UTILITIES: readonly SimBuildingPrefab[] = [
  civic("Wind Turbine", "Wind Turbine", "Electricity", 2, 2, 6_000, 80, {
    powerKw: 8_000,
    wind: true,
    roadless: true,
  }),
  civic("Advanced Wind Turbine", "Advanced Wind Turbine", "Electricity", 2, 2, 12_000, 200, {
    powerKw: 20_000,
    wind: true,
    roadless: true,
  }),
  civic("Coal Power Plant", "Coal Power Plant", "Electricity", 9, 6, 19_000, 560, {
    powerKw: 40_000,
    pollution: 80,
    jobs: 20,
  }),
  civic("Oil Power Plant", "Oil Power Plant", "Electricity", 8, 8, 50_000, 1_920, {
    powerKw: 120_000,
    pollution: 60,
    jobs: 30,
  }),
  civic("Solar Power Plant", "Solar Power Plant", "Electricity", 12, 12, 80_000, 1_200, {
    powerKw: 160_000,
    jobs: 15,
  }),
  civic("Nuclear Power Plant", "Nuclear Power Plant", "Electricity", 16, 14, 200_000, 8_000, {
    powerKw: 640_000,
    jobs: 100,
  }),
  civic("Dam Power House", "Hydro Power Plant", "Electricity", 4, 4, 100_000, 3_200, {
    powerKw: 80_000,
    shore: true,
    roadless: true,
  }),
  civic("Fusion Power Plant", "Fusion Power Plant", "Electricity", 16, 16, 1_000_000, 16_000, {
    powerKw: 16_000_000,
    jobs: 100,
  }),
  civic("Electricity Pole", "Electricity Pole", "Electricity", 1, 1, 0, 0, { roadless: true }),
  civic("Water Intake", "Water Pumping Station", "Water", 3, 3, 2_500, 160, {
    waterM3: 120_000,
    shore: true,
    roadless: true,
  }),
  civic("Water Tower", "Water Tower", "Water", 2, 2, 3_500, 160, { waterM3: 60_000, roadless: true }),
  civic("Water Outlet", "Water Drain Pipe", "Water", 3, 3, 2_500, 320, {
    sewageM3: 120_000,
    shore: true,
    pollution: 60,
    roadless: true,
  }),
  civic("Water Treatment Plant", "Water Treatment Plant", "Water", 6, 6, 10_000, 640, {
    sewageM3: 160_000,
    shore: true,
    pollution: 15,
    jobs: 10,
  }),
  civic("Inland Water Treatment Plant 01", "Inland Water Treatment Plant", "Water", 5, 7, 20_000, 800, {
    sewageM3: 80_000,
    pollution: 10,
    jobs: 10,
  }),
  civic("Boiler Station", "Boiler Station", "Water", 4, 4, 10_000, 400, {
    heatKw: 40_000,
    pollution: 20,
    jobs: 8,
  }),
  civic(
    "Water Pipe Junction",
    "Water Pipe Junction",
    "Water",
    1,
    1,
    0,
    0,
    { roadless: true },
    { helper: true },
  ),
  civic(
    "Heating Pipe Junction",
    "Heating Pipe Junction",
    "Water",
    1,
    1,
    0,
    0,
    { roadless: true },
    { helper: true },
  ),
];

const SERVICES: readonly SimBuildingPrefab[] = [
  civic("Landfill Site", "Landfill Site", "Garbage", 12, 8, 4_000, 400, {
    ...covers("garbage", 1_500, 6_000),
    pollution: 70,
    jobs: 15,
  }),
  civic("Combustion Plant", "Incineration Plant", "Garbage", 6, 8, 30_000, 1_440, {
    ...covers("garbage", 2_000, 12_000),
    powerKw: 12_000,
    pollution: 50,
    jobs: 20,
  }),
  civic("Medical Clinic", "Medical Clinic", "HealthCare", 5, 4, 10_000, 400, covers("health", 900, 100, 10)),
  civic("Hospital", "Hospital", "HealthCare", 8, 8, 65_000, 2_400, covers("health", 1_800, 500, 50)),
  civic("Cemetery", "Cemetery", "HealthCare", 8, 8, 8_000, 160, covers("death", 1_500, 60, 8)),
  civic("Crematory", "Crematorium", "HealthCare", 5, 5, 25_000, 720, covers("death", 1_500, 105, 10)),
  civic(
    "Medical Center",
    "Medical Center",
    "HealthCare",
    14,
    12,
    500_000,
    6_000,
    covers("health", 9_000, 5_000, 100),
  ),
  civic("Fire House", "Fire House", "FireDepartment", 4, 4, 12_000, 560, covers("fire", 900, 300, 10)),
  civic(
    "Fire Station",
    "Fire Station",
    "FireDepartment",
    6,
    6,
    60_000,
    1_440,
    covers("fire", 1_600, 1_250, 25),
  ),
  civic(
    "Police Station",
    "Police Station",
    "PoliceDepartment",
    5,
    5,
    15_000,
    600,
    covers("police", 1_000, 500, 20),
  ),
  civic("Police Headquarters", "Police Headquarters", "PoliceDepartment", 8, 8, 65_000, 2_400, {
    ...covers("police", 2_000, 1_500, 50),
  }),
  civic(KOBAN, "Koban", "PoliceDepartment", 2, 2, 5_000, 200, covers("police", 500, 150, 4)),
  civic(
    "Elementary School",
    "Elementary School",
    "Education",
    6,
    4,
    10_000,
    160,
    covers("elementary", 1_000, 300, 15),
    {
      level: 1,
    },
  ),
  civic(
    "High School",
    "High School",
    "Education",
    6,
    5,
    24_000,
    560,
    covers("highSchool", 1_800, 1_000, 30),
    {
      level: 2,
    },
  ),
  civic(
    "University",
    "University",
    "Education",
    10,
    10,
    75_000,
    1_920,
    covers("university", 4_000, 4_500, 60),
    {
      level: 3,
    },
  ),
  civic("Hadron Collider", "Hadron Collider", "Education", 14, 11, 800_000, 9_600, {
    ...covers("university", 9_000, 20_000, 100),
  }),
];

const PARKS: readonly SimBuildingPrefab[] = [
  park("Regular Park", "Small Park", 4, 4, 3_000, 120, 220),
  park("Regular Plaza", "Plaza with Trees", 4, 4, 3_000, 120, 220),
  park("Regular Playground", "Small Playground", 2, 2, 1_500, 80, 160),
  park("Expensive Park", "Large Park", 6, 4, 8_000, 320, 320),
  park("Expensive Plaza", "Plaza", 6, 4, 8_000, 320, 320),
  park("Expensive Playground", "Large Playground", 4, 4, 4_500, 200, 240),
  park("JapaneseGarden", "Japanese Garden", 4, 4, 7_000, 300, 320),
  park("Tropical Garden", "Tropical Garden", 4, 4, 7_000, 300, 320),
  park("Botanical garden", "Botanical Garden", 6, 6, 10_000, 400, 400),
  park("Basketball Court", "Basketball Court", 3, 3, 2_500, 100, 180),
  park("MerryGoRound", "Carousel Park", 4, 4, 6_000, 240, 300),
];

const TRANSPORT: readonly SimBuildingPrefab[] = [
  transport("Bus Depot", "Bus Depot", "PublicTransportBus", 6, 6, 40_000, 400),
  transport("Metro Entrance", "Metro Station", "PublicTransportMetro", 3, 2, 15_000, 300),
  transport("Train Station", "Train Station", "PublicTransportTrain", 14, 6, 65_000, 800),
  transport("Cargo Center", "Cargo Train Terminal", "PublicTransportTrain", 14, 8, 60_000, 800),
  transport("Harbor", "Harbor", "PublicTransportShip", 16, 10, 60_000, 960),
  transport("Cargo Harbor", "Cargo Harbor", "PublicTransportShip", 16, 12, 60_000, 960),
  transport("Airport", "Airport", "PublicTransportPlane", 16, 16, 150_000, 4_800),
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
].map((name) => civic(name, name, "Monument", 8, 8, 80_000, 1_200, covers("leisure", 1_200, 4_000, 20)));

/** The one asset of the known broken family: listed nowhere, never placed, switched off on request. */
export const BLOCKED_PREFAB = civic(
  "Block Services - Utility Yard_Data",
  "Block Services - Utility Yard",
  "Water",
  4,
  4,
  0,
  0,
  {},
  { blocked: true },
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
  displayName: string,
  service: Service,
  width: number,
  length: number,
  cost: number,
  upkeepPerWeek: number,
  role: Civic,
  extra: Extra = {},
): SimBuildingPrefab {
  return {
    name,
    displayName,
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
  width: number,
  length: number,
  cost: number,
  upkeepPerWeek: number,
  radiusMeters: number,
): SimBuildingPrefab {
  const role = { ...covers("leisure", radiusMeters, 600), roadless: true };
  return civic(name, displayName, "Beautification", width, length, cost, upkeepPerWeek, role);
}

function transport(
  name: string,
  displayName: string,
  subService: SubService,
  width: number,
  length: number,
  cost: number,
  upkeepPerWeek: number,
): SimBuildingPrefab {
  const role: Civic = { jobs: 15 };
  return civic(name, displayName, "PublicTransport", width, length, cost, upkeepPerWeek, role, {
    subService,
  });
}
