/**
 * The land: heights at 1081 x 1081 points that are 16 m apart, and a single water level.
 *
 * The heights are a pure function of the seed, so they are computed when first needed and never saved. They
 * are multiples of 1/64 m, as in the game. Around the origin the ground is flat at 60 m. Gentle hills lie beyond
 * this plain. A river runs from north to south, east of x = 640.
 */
import { hash } from "./random.js";

/** The map reaches from -8640 to 8640 m in x and z. */
export const MAP_HALF_METERS = 8640;
/** Height of the surface of all water. */
const SEA_LEVEL_METERS = 40;

const SAMPLES = 1081;
const SPACING_METERS = 16;
const STEPS_PER_METER = 64;
const PLAIN_METERS = 60;
const PLAIN_RADIUS_METERS = 1100;
const HILLS_FULL_RADIUS_METERS = 3200;
const HILL_AMPLITUDE_METERS = 60;
const RIVER_BED_METERS = 18;
const RIVER_HALF_WIDTH_METERS = 70;
const RIVER_BANK_METERS = 190;
/** Distance from the river at which hills begin. */
const VALLEY_METERS = 300;
/** Distance over which hills rise to their full height. */
const VALLEY_SIDE_METERS = 1500;

export class Terrain {
  /** Heights in steps of 1/64 m, plus 1. The value 0 marks a sample that is not computed yet. */
  readonly #samples = new Uint16Array(SAMPLES * SAMPLES);

  constructor(readonly seed: number) {}

  /** Ground height in metres, interpolated between samples. Outside the map, the height at the nearest edge. */
  groundHeight(x: number, z: number): number {
    const column = gridCoordinate(x);
    const row = gridCoordinate(z);
    const i = Math.min(Math.floor(column), SAMPLES - 2);
    const j = Math.min(Math.floor(row), SAMPLES - 2);
    const u = column - i;
    const v = row - j;
    const near = this.#sample(i, j) * (1 - u) + this.#sample(i + 1, j) * u;
    const far = this.#sample(i, j + 1) * (1 - u) + this.#sample(i + 1, j + 1) * u;
    return near * (1 - v) + far * v;
  }

  /** Height of the ground or of the water above it. */
  surfaceHeight(x: number, z: number): number {
    return Math.max(this.groundHeight(x, z), SEA_LEVEL_METERS);
  }

  isWater(x: number, z: number): boolean {
    return this.groundHeight(x, z) < SEA_LEVEL_METERS;
  }

  #sample(i: number, j: number): number {
    const index = j * SAMPLES + i;
    let stored = this.#samples[index] as number;
    if (stored === 0) {
      const x = i * SPACING_METERS - MAP_HALF_METERS;
      const z = j * SPACING_METERS - MAP_HALF_METERS;
      stored = Math.round(shape(this.seed, x, z) * STEPS_PER_METER) + 1;
      this.#samples[index] = stored;
    }
    return (stored - 1) / STEPS_PER_METER;
  }
}

function gridCoordinate(meters: number): number {
  return Math.min(Math.max((meters + MAP_HALF_METERS) / SPACING_METERS, 0), SAMPLES - 1);
}

/** Height in metres at one point: a plain with hills around it, cut by a river. */
function shape(seed: number, x: number, z: number): number {
  const distance = Math.hypot(x, z);
  const wildness = smoothStep(
    (distance - PLAIN_RADIUS_METERS) / (HILLS_FULL_RADIUS_METERS - PLAIN_RADIUS_METERS),
  );
  const hills =
    (valueNoise(seed, x, z, 1800) * 0.75 + valueNoise(seed + 1, x, z, 700) * 0.25) * HILL_AMPLITUDE_METERS;
  const offCenter = Math.abs(x - riverCenter(seed, z));
  const valley = smoothStep((offCenter - VALLEY_METERS) / VALLEY_SIDE_METERS);
  const land = PLAIN_METERS + wildness * valley * hills;
  const bank = smoothStep((offCenter - RIVER_HALF_WIDTH_METERS) / RIVER_BANK_METERS);
  return RIVER_BED_METERS + (land - RIVER_BED_METERS) * bank;
}

/** The river meanders between about x = 940 and x = 1240, its banks always east of x = 640. */
function riverCenter(seed: number, z: number): number {
  return 1090 + 150 * (2 * valueNoise(seed + 2, 0, z, 1500) - 1);
}

/** Smooth noise from 0 to 1. Interpolates between hashed values at the points of a lattice. */
function valueNoise(seed: number, x: number, z: number, wavelength: number): number {
  const i = Math.floor(x / wavelength);
  const j = Math.floor(z / wavelength);
  const u = smoothStep(x / wavelength - i);
  const v = smoothStep(z / wavelength - j);
  const at = (a: number, b: number) => hash(seed, a, b) / 0xffffffff;
  const near = at(i, j) * (1 - u) + at(i + 1, j) * u;
  const far = at(i, j + 1) * (1 - u) + at(i + 1, j + 1) * u;
  return near * (1 - v) + far * v;
}

function smoothStep(t: number): number {
  const c = Math.min(Math.max(t, 0), 1);
  return c * c * (3 - 2 * c);
}
