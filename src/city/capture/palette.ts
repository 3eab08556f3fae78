/** Colours of a captured map, those of the city page's light scheme, as indices into PALETTE. */
import type { Rgb } from "../../system/png.js";

const GROUND: Rgb = [238, 240, 233];
const HILL: Rgb = [176, 160, 128];
const SHORE: Rgb = [196, 216, 230];
const DEEP: Rgb = [84, 140, 190];
const SHADES = 16;

const FEATURE_COLORS = {
  offMap: [40, 44, 42],
  path: [185, 154, 107],
  track: [90, 74, 74],
  smallRoad: [163, 166, 163],
  mediumRoad: [141, 138, 132],
  largeRoad: [125, 116, 104],
  highway: [224, 145, 58],
  waterPipe: [22, 102, 197],
  heatPipe: [176, 58, 46],
  powerLine: [181, 137, 0],
  ResidentialLow: [199, 231, 167],
  ResidentialHigh: [159, 205, 157],
  CommercialLow: [183, 226, 248],
  CommercialHigh: [151, 191, 232],
  IndustrialZone: [243, 228, 157],
  OfficeZone: [167, 231, 225],
  Residential: [46, 125, 50],
  Commercial: [31, 95, 176],
  Industrial: [184, 134, 11],
  Office: [23, 135, 125],
  service: [122, 79, 176],
  ruin: [90, 60, 50],
  plain: [205, 207, 201],
} as const satisfies Readonly<Record<string, Rgb>>;

export type Feature = keyof typeof FEATURE_COLORS;
const FEATURES = Object.keys(FEATURE_COLORS) as Feature[];

/** Gradient from bad to good: red, yellow, green. */
const SCALE: readonly Rgb[] = [
  [178, 24, 43],
  [253, 219, 121],
  [26, 120, 60],
];

/** Index of a colour in PALETTE. */
type PaletteIndex = number;

export const PALETTE: readonly Rgb[] = [
  ...shades(GROUND, HILL),
  ...shades(SHORE, DEEP),
  ...shades(SCALE[0] as Rgb, SCALE[1] as Rgb),
  ...shades(SCALE[1] as Rgb, SCALE[2] as Rgb),
  ...FEATURES.map((name) => FEATURE_COLORS[name]),
];

export function featureColor(feature: Feature): PaletteIndex {
  return 4 * SHADES + FEATURES.indexOf(feature);
}

/** @param share 0 for the lowest ground, 1 for the highest hills */
export function groundColor(share: number): PaletteIndex {
  return shadeIndex(share);
}

/** @param share 0 at the shore, 1 in deep water */
export function waterColor(share: number): PaletteIndex {
  return SHADES + shadeIndex(share);
}

/** @param share 0 bad, 1 good */
export function ratingColor(share: number): PaletteIndex {
  const index = Math.min(Math.max(Math.round(share * (2 * SHADES - 1)), 0), 2 * SHADES - 1);
  return 2 * SHADES + index;
}

function shadeIndex(share: number): number {
  return Math.min(Math.max(Math.round(share * (SHADES - 1)), 0), SHADES - 1);
}

function shades(from: Rgb, to: Rgb): Rgb[] {
  return Array.from({ length: SHADES }, (_, i) => {
    const mix = (channel: 0 | 1 | 2) =>
      Math.round(from[channel] + ((to[channel] - from[channel]) * i) / (SHADES - 1));
    return [mix(0), mix(1), mix(2)];
  });
}
