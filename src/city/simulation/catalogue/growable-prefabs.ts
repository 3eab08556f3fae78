/**
 * The buildings that zones grow. The game's own names are used where known; the remaining footprints (every size from
 * 1x1 to 4x4 at every level) follow the same naming pattern, so that a lot of any size can grow and level up.
 */
import type { Level, SubService } from "../../terms.js";
import type { GrowableClass, SimBuildingPrefab } from "./building-prefab.js";

interface GrowableFamily extends GrowableClass {
  readonly prefix: "L" | "H";
  /** One kind per level, for the sizes that have no name of the game's own. */
  readonly kinds: readonly string[];
  readonly displayNames: readonly string[];
  readonly knownNames: readonly string[];
}

const NONE: readonly number[] = [];

const FAMILIES: readonly GrowableFamily[] = [
  {
    service: "Residential",
    subService: "ResidentialLow",
    homes: [20, 25, 30, 35, 40],
    jobs: NONE,
    visitors: NONE,
    highDensity: false,
    prefix: "L",
    kinds: ["Detached01", "Detached05", "Semi-detachedhouse02", "Villa02", "Villa01"],
    displayNames: ["Small Home", "Family Home", "Semi-Detached House", "Villa", "Grand Villa"],
    knownNames: [
      "L1 1x1 Detached",
      "L1 2x2 Detached01",
      "L1 2x2 Detached04",
      "L1 2x3 Detached03",
      "L1 3x3 Detached02",
      "L1 4x4 Detached02",
      "L2 2x2 Detached05",
      "L2 3x4 Semi-detachedhouse02a",
      "L3 3x3 Semi-detachedhouse02",
      "L4 2x2 Villa02",
      "L4 3x4 Villa01",
      "L5 3x3 Villa01",
      "L5 4x4 Villa03",
    ],
  },
  {
    service: "Residential",
    subService: "ResidentialHigh",
    homes: [60, 100, 130, 150, 160],
    jobs: NONE,
    visitors: NONE,
    highDensity: true,
    prefix: "H",
    kinds: ["Tenement05", "Tenement06", "Tenement08", "Tenement09", "Highrise05"],
    displayNames: ["Tenement", "Apartment House", "Apartment Block", "Modern Apartments", "High-Rise"],
    knownNames: [
      "H1 1x1 Tenement",
      "H1 2x2 Tenement05",
      "H1 3x3 Tenement03",
      "H2 3x4 Tenement06",
      "H3 4x3 Tenement08",
      "H4 2x2 Tenement09",
      "H5 3x4 Highrise05",
      "H5 4x4 Highrise07",
    ],
  },
  {
    service: "Commercial",
    subService: "CommercialLow",
    homes: NONE,
    jobs: [50, 75, 100],
    visitors: [90, 100, 110],
    highDensity: false,
    prefix: "L",
    kinds: ["Shop02", "Shop04", "Shop07"],
    displayNames: ["Corner Shop", "Neighbourhood Store", "Boutique"],
    knownNames: [
      "L1 1x1 Shop",
      "L1 2x2 Shop02",
      "L1 3x3 Shop07",
      "L2 2x2 Shop2",
      "L2 3x4 Shop04",
      "L3 1x1 Shop07",
      "L3 4x4 Shop07a",
    ],
  },
  {
    service: "Commercial",
    subService: "CommercialHigh",
    homes: NONE,
    jobs: [75, 100, 125],
    visitors: [200, 300, 400],
    highDensity: true,
    prefix: "H",
    kinds: ["Shop01", "Shop06", "Shop11"],
    displayNames: ["Department Store", "Shopping Arcade", "Shopping Centre"],
    knownNames: [
      "H1 1x1 Shop07",
      "H1 2x2 Shop01",
      "H1 4x4 Shop03",
      "H2 2x2 Shop01",
      "H2 4x4 Shop06",
      "H3 2x2 Shop01",
      "H3 4x4 Shop11",
      "H3 3x4 Hotel",
    ],
  },
  {
    service: "Industrial",
    subService: "IndustrialGeneric",
    homes: NONE,
    jobs: [100, 150, 200],
    visitors: NONE,
    highDensity: true,
    prefix: "H",
    kinds: ["Sweatshop04", "Bigfactory02", "Mediumfactory06"],
    displayNames: ["Workshop", "Factory", "Modern Factory"],
    knownNames: [
      "H1 1x1 Facility01",
      "H1 2x2 Sweatshop03",
      "H1 3x3 Sweatshop04",
      "H1 4x4 Bigfactory01",
      "H2 1x1 Facility03",
      "H2 2x2 sweatshop01",
      "H2 4x4 Bigfactory02",
      "H3 1x1 Facility05",
      "H3 2x2 Bigfactory06",
      "H3 4x4 Mediumfactory06",
    ],
  },
  {
    service: "Office",
    subService: "OfficeGeneric",
    homes: NONE,
    jobs: [50, 110, 170],
    visitors: NONE,
    highDensity: true,
    prefix: "H",
    kinds: ["Office02", "Office06", "Office12"],
    displayNames: ["Office", "Office Block", "Office Tower"],
    knownNames: [
      "H1 1x1 Office",
      "H1 2x2 Office02",
      "H1 3x4 Office01",
      "H2 2x2 Office04",
      "H2 4x4 Office06",
      "H3 2x2 Office11",
      "H3 4x4 Office12",
    ],
  },
];

/** Specialised industry, which a lot never grows by itself (it needs a district) but a builder may place. */
const SPECIALISED: readonly { name: string; subService: SubService; width: number; length: number }[] = [
  { name: "Farming4x4", subService: "IndustrialFarming", width: 4, length: 4 },
  { name: "Agricultural 2x2 processing 2", subService: "IndustrialFarming", width: 2, length: 2 },
  { name: "Forestry 3x3 Processing", subService: "IndustrialForestry", width: 3, length: 3 },
  { name: "Oil 3x3 Extractor", subService: "IndustrialOil", width: 3, length: 3 },
  { name: "Ore 2x2 Extractor", subService: "IndustrialOre", width: 2, length: 2 },
];

const INDUSTRY = FAMILIES.find((family) => family.service === "Industrial") as GrowableFamily;

export const GROWABLE_PREFABS: readonly SimBuildingPrefab[] = [
  ...FAMILIES.flatMap(familyPrefabs),
  ...SPECIALISED.map((row) =>
    growable({ ...INDUSTRY, subService: row.subService }, row.name, row.name, 1, row.width, row.length),
  ),
];

const BY_LOT = new Map<string, SimBuildingPrefab[]>();
for (const prefab of GROWABLE_PREFABS.slice(0, -SPECIALISED.length)) {
  const key = lotKey(prefab.subService, prefab.level, prefab.width, prefab.length);
  BY_LOT.set(key, [...(BY_LOT.get(key) ?? []), prefab]);
}

/** The prefabs that fit a lot exactly; empty when the family has no such level. */
export function growablesFor(
  subService: SubService,
  level: number,
  width: number,
  length: number,
): readonly SimBuildingPrefab[] {
  return BY_LOT.get(lotKey(subService, level, width, length)) ?? [];
}

function lotKey(subService: SubService, level: number, width: number, length: number): string {
  return `${subService} ${level} ${width}x${length}`;
}

function familyPrefabs(family: GrowableFamily): SimBuildingPrefab[] {
  const known = family.knownNames.map((name) => {
    const [level, width, length] = [Number(name[1]), Number(name[3]), Number(name[5])];
    return growable(family, name, family.displayNames[level - 1] as string, level as Level, width, length);
  });
  const named = new Set(
    known.map((prefab) => lotKey(family.subService, prefab.level, prefab.width, prefab.length)),
  );
  const patterned = family.kinds.flatMap((kind, index) =>
    lotSizes()
      .filter(([width, length]) => !named.has(lotKey(family.subService, index + 1, width, length)))
      .map(([width, length]) => {
        const name = `${family.prefix}${index + 1} ${width}x${length} ${kind}`;
        return growable(
          family,
          name,
          family.displayNames[index] as string,
          (index + 1) as Level,
          width,
          length,
        );
      }),
  );
  return [...known, ...patterned];
}

function lotSizes(): [number, number][] {
  return [1, 2, 3, 4].flatMap((width) => [1, 2, 3, 4].map((length): [number, number] => [width, length]));
}

function growable(
  family: GrowableClass,
  name: string,
  displayName: string,
  level: Level,
  width: number,
  length: number,
): SimBuildingPrefab {
  return {
    name,
    displayName,
    service: family.service,
    subService: family.subService,
    level,
    width,
    length,
    blocked: false,
    helper: false,
    growable: {
      service: family.service,
      subService: family.subService,
      homes: family.homes,
      jobs: family.jobs,
      visitors: family.visitors,
      highDensity: family.highDensity,
    },
    civic: null,
    cost: 0,
    upkeepPerWeek: 0,
  };
}
