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

/** Growable buildings by service: the colours of the game, darker than the zone below. */
export const GROWABLE_COLORS: Readonly<Record<string, string>> = {
  Residential: "#2e7d32",
  Commercial: "#1f5fb0",
  Industrial: "#b8860b",
  Office: "#17877d",
};

export const DEMAND_COLORS = { residential: "#4caf50", commercial: "#3d8fe0", workplace: "#d9b21a" } as const;

export const NO_SERVICE_COLOR = "#8a8f8c";
