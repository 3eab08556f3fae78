/** Colours of the map, one set per colour scheme, and the words that pick them. */

export interface Colors {
  readonly ground: string;
  /** The highest hills and the deepest water; lower ones fade into the ground. */
  readonly hill: readonly [number, number, number];
  readonly water: readonly [number, number, number];
  readonly highway: string;
  readonly largeRoad: string;
  readonly mediumRoad: string;
  readonly smallRoad: string;
  readonly path: string;
  readonly track: string;
  readonly waterPipe: string;
  readonly powerLine: string;
  readonly service: string;
  readonly outline: string;
  readonly symbol: string;
}

const LIGHT: Colors = {
  ground: "#eef0e9",
  hill: [176, 160, 128],
  water: [126, 178, 221],
  highway: "#e0913a",
  largeRoad: "#7d7468",
  mediumRoad: "#8d8a84",
  smallRoad: "#a3a6a3",
  path: "#b99a6b",
  track: "#5a4a4a",
  waterPipe: "#1666c5",
  powerLine: "#b58900",
  service: "#7a4fb0",
  outline: "#ffffff",
  symbol: "#ffffff",
};

const DARK: Colors = {
  ground: "#1b211d",
  hill: [104, 96, 78],
  water: [35, 72, 112],
  highway: "#c97a25",
  largeRoad: "#a69c8e",
  mediumRoad: "#8b8781",
  smallRoad: "#6c716d",
  path: "#80694a",
  track: "#b3a0a0",
  waterPipe: "#59a6ff",
  powerLine: "#f2d024",
  service: "#b48ae8",
  outline: "#101412",
  symbol: "#ffffff",
};

const darkScheme = matchMedia("(prefers-color-scheme: dark)");

export function colors(): Colors {
  return darkScheme.matches ? DARK : LIGHT;
}

export function onColorsChanged(listener: () => void): void {
  darkScheme.addEventListener("change", listener);
}

/** By zone value; the first two are no zones to look at. */
export const ZONE_COLORS = [
  null,
  null,
  "#8fd14f",
  "#3f9b3a",
  "#6ec6f5",
  "#2f7fd6",
  "#e8c53a",
  "#4fd0c4",
] as const;

/** Growable buildings by service: the colours of the game, darker than the zone below. */
export const GROWABLE_COLORS: Readonly<Record<string, string>> = {
  Residential: "#2e7d32",
  Commercial: "#1f5fb0",
  Industrial: "#b8860b",
  Office: "#17877d",
};

export const DEMAND_COLORS = { residential: "#4caf50", commercial: "#3d8fe0", workplace: "#d9b21a" } as const;

export const NO_SERVICE_COLOR = "#8a8f8c";
