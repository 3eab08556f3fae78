/** Colours of the map, in a light and a dark scheme. */

/** Colours by name: the first of each pair is for the light scheme, the second for the dark scheme. */
const PALETTE = {
  ground: ["#eef0e9", "#1b211d"],
  /** Colours of the highest hills and of the deepest water, as red, green and blue. */
  hill: [
    [176, 160, 128],
    [104, 96, 78],
  ],
  water: [
    [126, 178, 221],
    [35, 72, 112],
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
  freeCell: ["#9aa39c", "#59635c"],
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

/** Smallest zone value that the map shows. ZONE_NAMES begins with this zone. */
export const FIRST_SHOWN_ZONE_VALUE = 2;
export const ZONE_NAMES = [
  "Homes, low",
  "Homes, high",
  "Shops, low",
  "Shops, high",
  "Industry",
  "Offices",
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
  readonly label: string;
  /** Letter or symbol shown on the map. */
  readonly symbol: string;
  /** Colour of the service, dark enough for white letters. */
  readonly color: string;
}

/** Label, symbol and colour of each service, in the order of the legend. */
export const SERVICE_STYLES: Readonly<Record<string, ServiceStyle>> = {
  Electricity: { label: "Power", symbol: "E", color: "#8a6d00" },
  Water: { label: "Water", symbol: "W", color: "#0b63a8" },
  Garbage: { label: "Rubbish", symbol: "G", color: "#5d6b2f" },
  HealthCare: { label: "Health", symbol: "H", color: "#b3261e" },
  FireDepartment: { label: "Fire", symbol: "F", color: "#c2410c" },
  PoliceDepartment: { label: "Police", symbol: "P", color: "#1e3a8a" },
  Education: { label: "Schools", symbol: "S", color: "#6d28d9" },
  PublicTransport: { label: "Transport", symbol: "T", color: "#475569" },
  Beautification: { label: "Parks", symbol: "♣", color: "#3f6212" },
  Monument: { label: "Monuments", symbol: "★", color: "#86198f" },
};
const OTHER_SERVICE: ServiceStyle = { label: "Other", symbol: "•", color: "#57534e" };

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
