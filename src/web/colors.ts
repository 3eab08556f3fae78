/** Colours of the map, one set per colour scheme, and the words that pick them. */

/** On a light and on a dark page. */
const PALETTE = {
  ground: ["#eef0e9", "#1b211d"],
  /** The highest hills and the deepest water; lower ones fade into the ground. */
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
  service: ["#7a4fb0", "#b48ae8"],
  outline: ["#ffffff", "#101412"],
  symbol: ["#ffffff", "#ffffff"],
  /** Around what is selected. */
  mark: ["#c2185b", "#ff80ab"],
} as const;

/** By name: as CSS has it, or as red, green and blue. */
export type Colors = { readonly [Name in keyof typeof PALETTE]: (typeof PALETTE)[Name][number] };

const DARK_SCHEME = matchMedia("(prefers-color-scheme: dark)");

export function colors(): Colors {
  const scheme = DARK_SCHEME.matches ? 1 : 0;
  return Object.fromEntries(Object.entries(PALETTE).map(([name, pair]) => [name, pair[scheme]])) as Colors;
}

export function onColorsChanged(listener: () => void): void {
  DARK_SCHEME.addEventListener("change", listener);
}

/** By zone value; the first two are no zones to look at. */
export const ZONE_COLORS = [null, null, "#8fd14f", "#3f9b3a", "#6ec6f5", "#2f7fd6", "#e8c53a", "#4fd0c4"];

/** In the order of their values, from the first that is one to look at. */
export const FIRST_ZONE = 2;
export const ZONE_NAMES = [
  "Homes, low",
  "Homes, high",
  "Shops, low",
  "Shops, high",
  "Industry",
  "Offices",
] as const;

/** Growable buildings by service: the colours of the game, darker than the zone below. */
export const GROWABLE_COLORS: Readonly<Record<string, string>> = {
  Residential: "#2e7d32",
  Commercial: "#1f5fb0",
  Industrial: "#b8860b",
  Office: "#17877d",
};

export const DEMAND_COLORS = { residential: "#4caf50", commercial: "#3d8fe0", workplace: "#d9b21a" } as const;

export const RUIN_COLOR = "#6d4c41";

/** From bad to good, by hue. */
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
