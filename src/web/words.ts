/** Plain words for the game's names: services, problems, data maps, causes, budget lines. The only such table of the page. */

/** Words by name. A name without an entry is split into its words. */
const WORDS: Readonly<Record<string, string>> = {
  // Services and budget lines
  Residential: "Homes",
  Commercial: "Shops",
  Industrial: "Industry",
  Office: "Offices",
  Electricity: "Power",
  Garbage: "Rubbish",
  HealthCare: "Health",
  FireDepartment: "Fire",
  PoliceDepartment: "Police",
  Education: "Schools",
  PublicTransport: "Transport",
  Beautification: "Parks",
  Monument: "Landmarks",
  Road: "Roads",
  Subsidies: "Help from the state",
  Milestones: "Rewards for growth",
  Grants: "Bail-out",
  Construction: "Building",
  LoanPayments: "Loan payments",
  // Zones and tax classes
  Unzoned: "No zone",
  ResidentialLow: "Homes, low",
  ResidentialHigh: "Homes, high",
  CommercialLow: "Shops, low",
  CommercialHigh: "Shops, high",
  IndustrialGeneric: "Industry",
  OfficeGeneric: "Offices",
  // Data maps and services of a place
  landValue: "Land value",
  power: "Power",
  water: "Water and drains",
  sewage: "Drains",
  heat: "Heating",
  fire: "Fire service",
  garbage: "Rubbish",
  leisure: "Parks",
  death: "Funerals",
  elementary: "Elementary schools",
  highSchool: "High schools",
  university: "Universities",
  // Causes of unhappiness
  residentHealth: "Health",
  rubbish: "Rubbish",
  commute: "Long ways to work",
  shopping: "Too few shops",
  taxes: "High taxes",
  // Problems
  ElectricityNotConnected: "No power line",
  Water: "Water",
  WaterNotConnected: "No water pipe",
  Sewage: "Waste water stays",
  DirtyWater: "Dirty water",
  Death: "Dead wait for a funeral",
  Crime: "Crime",
  Fire: "On fire",
  RoadNotConnected: "No road",
  RoadAccessFailed: "No road",
  HeatingNotConnected: "No heating pipe",
  Heating: "No heating",
  Flood: "Flooded",
  TaxesTooHigh: "Taxes are too high",
  LandValueLow: "Land value is low",
  TooFewServices: "Too few services",
  NoWorkers: "Not enough workers",
  NoEducatedWorkers: "Not enough educated workers",
  NoCustomers: "Not enough customers",
  NoGoods: "Nothing to sell",
  NoPlaceforGoods: "No place for goods",
  NoFuel: "No fuel",
  TurnedOff: "Switched off",
  LandfillFull: "Full",
  Emptying: "Being emptied",
  EmptyingFinished: "Emptied",
  Abandoned: "Abandoned",
  BurnedDown: "Burned down",
  None: "",
};

/** "No resources" for `NoResources`; plain text stays the same. */
export function inWords(name: string): string {
  const known = WORDS[name];
  if (known !== undefined) return known;
  const level = /^Level(\d)$/.exec(name);
  if (level) return `Level ${level[1]}`;
  const spaced = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return spaced.replace(/^./, (letter) => letter.toUpperCase());
}

/** Names of problems that read unlike the service of the same name. */
const LACKS: Readonly<Record<string, string>> = {
  Electricity: "No power",
  Water: "No water",
  Garbage: "Rubbish piles up",
};

export function problemInWords(name: string): string {
  return LACKS[name] ?? inWords(name);
}

/** "1,234" for 1234.4. */
export function formatWholeNumber(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** What 0 and 100 mean on each data map. */
export const SCALES: Readonly<Record<string, readonly [least: string, most: string]>> = {
  traffic: ["empty roads", "full roads"],
  power: ["no power", "power everywhere"],
  water: ["neither water nor drains", "both"],
  landValue: ["cheap land", "dear land"],
  pollution: ["clean", "dirty"],
  happiness: ["unhappy", "happy"],
  crime: ["safe", "much crime"],
  garbage: ["clean", "full of rubbish"],
};
export const SERVICE_SCALE = ["out of reach", "served well"] as const;

export interface Purpose {
  readonly service: string;
  readonly subService: string;
  readonly needs?: readonly string[];
  readonly supply?: Readonly<Record<"powerKw" | "waterM3" | "sewageM3" | "heatKw", number>>;
  readonly coverage?: {
    readonly service: string;
    readonly rangeMeters: number;
  } | null;
  readonly pollution?: number;
}

const COVERS: Readonly<Record<string, string>> = {
  garbage: "Collects rubbish",
  health: "Treats the sick",
  death: "Buries the dead",
  police: "Keeps crime low",
  fire: "Puts fires out",
  elementary: "Teaches children",
  highSchool: "Teaches teenagers",
  university: "Teaches adults",
  leisure: "Makes homes near it happier and land dearer",
};

/** What a building does, and how far it reaches. */
export function purposeOf({ supply, coverage, service, needs = [], pollution = 0 }: Purpose): string {
  const amount = (value: number | undefined, text: string) =>
    value ? [text.replace("#", formatWholeNumber(value))] : [];
  const does = [
    ...amount((supply?.powerKw ?? 0) / 1000, "Gives # MW of power"),
    ...amount(supply?.waterM3, "Pumps # m³ of water a week"),
    ...amount(supply?.sewageM3, "Cleans # m³ of waste water a week"),
    ...amount((supply?.heatKw ?? 0) / 1000, "Gives # MW of heat"),
    ...(coverage
      ? [
          `${COVERS[coverage.service] ?? inWords(coverage.service)}, within ${coverage.rangeMeters.toLocaleString("en")} m`,
        ]
      : []),
  ];
  const other = service === "PublicTransport" ? ["Gives jobs only: the city has no lines"] : [];
  const wants = needs.filter((need) => need !== "road");
  const asks = wants.length > 0 ? [`needs ${wants.join(", ")}`] : [];
  const smell = pollution > 30 ? ["dirties the ground around it"] : [];
  const all = [...(does.length > 0 ? does : other), ...asks, ...smell];
  return all.length > 0 ? `${all.join("; ")}.` : "";
}
