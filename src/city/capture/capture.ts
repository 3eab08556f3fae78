/**
 * GET /capture: the map around a point as a PNG. `mode` accepts the names of the game's info views, as later
 * versions of the game's bridge do. Other requests do not wait, because painting is split into slices of some
 * milliseconds, and compression runs in another thread.
 */

import { z } from "zod";
import { encodePng } from "../../system/png.js";
import { PLACE_PARAMETERS } from "../read-route.js";
import { RefusedError } from "../refusal.js";
import type { World } from "../simulation/state/world.js";
import { inSteps } from "../steps.js";
import type { Layer } from "../terms.js";
import type { Query } from "../wire/requests.js";
import { PALETTE } from "./palette.js";
import { paint } from "./scene.js";

/** Data layer of each info view of the game, by the view's name. */
const MODES: Readonly<Record<string, Layer | null>> = {
  None: null,
  Traffic: "traffic",
  Electricity: "power",
  Water: "water",
  LandValue: "landValue",
  Pollution: "pollution",
  Happiness: "happiness",
  CrimeRate: "crime",
  Garbage: "garbage",
  Health: "health",
  FireSafety: "fire",
  Education: "education",
  Entertainment: "leisure",
};

const SIZE_METERS = { fallback: 1000, least: 50, most: 20_000 };
const PIXELS = { fallback: 1024, least: 16, most: 1024 };

export const CAPTURE_PARAMETERS = {
  ...PLACE_PARAMETERS,
  size: z.number().default(SIZE_METERS.fallback).describe("Edge of the square in metres, 50 to 20000."),
  pixels: z.int().default(PIXELS.fallback).describe("Width and height of the image, 16 to 1024."),
  mode: z.enum(Object.keys(MODES)).default("None"),
  allowBlank: z.boolean().default(false).describe("Also returns an image of a single colour."),
};

/** @throws RefusedError for an unknown mode, or for an image of a single colour without `allowBlank` */
export async function capture(world: World, query: Query) {
  const mode = query.text("mode") || "None";
  const layer = Object.hasOwn(MODES, mode) ? MODES[mode] : undefined;
  if (layer === undefined) {
    throw new RefusedError(
      `Unknown mode "${mode.slice(0, 40)}"; it must be one of ${Object.keys(MODES).join(", ")}`,
    );
  }
  const center = { x: query.decimal("x", 0), z: query.decimal("z", 0) };
  const sizeMeters = clamp(query.decimal("size", SIZE_METERS.fallback), SIZE_METERS);
  const pixels = clamp(query.integer("pixels", PIXELS.fallback), PIXELS);
  const raster = await inSteps(paint(world, { center, sizeMeters, pixels }, layer));
  const distinctColors = countColors(raster.pixels);
  if (distinctColors < 2 && !query.flag("allowBlank", false)) {
    throw new RefusedError(
      `The area at ${center.x}, ${center.z} is blank; pass allowBlank=true to return it anyway`,
    );
  }
  const picture = { width: pixels, height: pixels, pixels: raster.pixels, palette: PALETTE };
  return { png: await encodePng(picture), mode, distinctColors };
}

function countColors(pixels: Uint8Array): number {
  const seen = new Uint8Array(PALETTE.length);
  for (const color of pixels) seen[color] = 1;
  return seen.reduce((sum, each) => sum + each, 0);
}

function clamp(value: number, { least, most }: { least: number; most: number }): number {
  return Math.min(Math.max(value, least), most);
}
