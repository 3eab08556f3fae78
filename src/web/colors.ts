/** Colours of the map, in a light and a dark scheme. */

/** Colours by name: the first of each pair is for the light scheme, the second for the dark scheme. */
const PALETTE = {
  /** Meadow at the height of the plain. */
  ground: ["#d6e2bc", "#4f6148"],
  /** Colours of the highest hills and of the deepest water, as red, green and blue. */
  hill: [
    [168, 148, 110],
    [112, 102, 80],
  ],
  water: [
    [86, 150, 205],
    [38, 84, 132],
  ],
  shallow: [
    [150, 200, 226],
    [62, 112, 150],
  ],
  sand: [
    [228, 214, 170],
    [122, 114, 86],
  ],
  highway: ["#e0913a", "#c97a25"],
  largeRoad: ["#7d7468", "#a69c8e"],
  mediumRoad: ["#8d8a84", "#8b8781"],
  smallRoad: ["#a3a6a3", "#6c716d"],
  path: ["#b99a6b", "#80694a"],
  track: ["#5a4a4a", "#b3a0a0"],
  waterPipe: ["#1666c5", "#59a6ff"],
  powerLine: ["#b58900", "#f2d024"],
  /** Colour of cells that can be zoned. */
  freeCell: ["#9aa39c", "#b4bdb5"],
  /** Colour of street names. */
  label: ["#2b332e", "#dde5df"],
  shadow: ["#00000038", "#00000070"],
  outline: ["#ffffff", "#101412"],
  symbol: ["#ffffff", "#ffffff"],
  /** Outline of the selected entity. */
  mark: ["#c2185b", "#ff80ab"],
} as const;

/** Colours of one scheme by name, as CSS text or as red, green and blue. */
export type Colors = { readonly [Name in keyof typeof PALETTE]: (typeof PALETTE)[Name][number] };

const DARK_SCHEME = matchMedia("(prefers-color-scheme: dark)");

export function colors(): Colors {
  const scheme = DARK_SCHEME.matches ? 1 : 0;
  return Object.fromEntries(Object.entries(PALETTE).map(([name, pair]) => [name, pair[scheme]])) as Colors;
}

export function onColorsChanged(listener: () => void): void {
  DARK_SCHEME.addEventListener("change", listener);
}

/** Colours indexed by zone value. Values 0 and 1 have no colour, because the map does not show them. */
export const ZONE_COLORS = [null, null, "#8fd14f", "#3f9b3a", "#6ec6f5", "#2f7fd6", "#e8c53a", "#4fd0c4"];

/** Names of the zone values from FIRST_ZONE_VALUE on; smaller values are not shown. */
export const FIRST_ZONE_VALUE = 2;
export const ZONES = [
  "ResidentialLow",
  "ResidentialHigh",
  "CommercialLow",
  "CommercialHigh",
  "Industrial",
  "Office",
] as const;

/** Colours of growable buildings by service, as in the game. They are darker than ZONE_COLORS. */
export const GROWABLE_COLORS: Readonly<Record<string, string>> = {
  Residential: "#2e7d32",
  Commercial: "#1f5fb0",
  Industrial: "#b8860b",
  Office: "#17877d",
};

export const DEMAND_COLORS = { residential: "#4caf50", commercial: "#3d8fe0", workplace: "#d9b21a" } as const;

export interface ServiceStyle {
  /** Letter or symbol shown on the map. */
  readonly symbol: string;
  /** Colour of the service, dark enough for white letters. */
  readonly color: string;
}

/** Symbol and colour of each service, in the order of the legend. */
export const SERVICE_STYLES: Readonly<Record<string, ServiceStyle>> = {
  Electricity: { symbol: "E", color: "#8a6d00" },
  Water: { symbol: "W", color: "#0b63a8" },
  Garbage: { symbol: "G", color: "#5d6b2f" },
  HealthCare: { symbol: "H", color: "#b3261e" },
  FireDepartment: { symbol: "F", color: "#c2410c" },
  PoliceDepartment: { symbol: "P", color: "#1e3a8a" },
  Education: { symbol: "S", color: "#6d28d9" },
  PublicTransport: { symbol: "T", color: "#475569" },
  Beautification: { symbol: "♣", color: "#3f6212" },
  Monument: { symbol: "★", color: "#86198f" },
};
const OTHER_SERVICE: ServiceStyle = { symbol: "•", color: "#57534e" };

export function serviceStyle(service: string): ServiceStyle {
  return SERVICE_STYLES[service] ?? OTHER_SERVICE;
}

export const RUIN_COLOR = "#6d4c41";

/** Colours from bad to good: red, yellow, green. */
const SCALE = [
  [178, 24, 43],
  [253, 219, 121],
  [26, 120, 60],
] as const;

/** @param value 0 bad, 100 good */
export function scaleColor(value: number): string {
  const at = Math.min(Math.max(value, 0), 100) / 50;
  const [from, to] = at < 1 ? [SCALE[0], SCALE[1]] : [SCALE[1], SCALE[2]];
  const share = at < 1 ? at : at - 1;
  const mix = (i: 0 | 1 | 2) => Math.round(from[i] + (to[i] - from[i]) * share);
  return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
}

/** Day and night together last 16 calendar weeks, as in the game. A calendar day would pass in seconds. */
const LIGHT_DAY_MS = 16 * 7 * 86_400_000;
/** Time of one midnight in the cycle: the light on 1 January 2031 begins at eight in the morning. */
const MIDNIGHT_MS = Date.UTC(2031, 0, 1) - LIGHT_DAY_MS / 3;

/** Darkness of the map: 0 by day, 1 at midnight. */
export function darknessAt(gameTime: string): number {
  const turns = (Date.parse(`${gameTime}Z`) - MIDNIGHT_MS) / LIGHT_DAY_MS;
  return Math.min(Math.max(1.5 * Math.cos(2 * Math.PI * turns), 0), 1);
}
