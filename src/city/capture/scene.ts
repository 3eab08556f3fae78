/** Paints the captured map, layer by layer in painting order. */

import { BLOCK_COLUMNS, boxAround, boxesTouch, cornersOf, pointInBlock, squareAround } from "../geometry.js";
import { networkClass } from "../network-class.js";
import { isGrowable, isRuin } from "../simulation/fabric/buildings.js";
import { layerOf } from "../simulation/life/layers.js";
import type { Building, ZoneBlock } from "../simulation/state/entities.js";
import { MAP_HALF_METERS } from "../simulation/state/terrain.js";
import type { World } from "../simulation/state/world.js";
import { type GrowableService, type Layer, ZONES } from "../terms.js";
import { type Feature, featureColor, groundColor, ratingColor, waterColor } from "./palette.js";
import { type ImageFrame, Raster, type Shape, thickLine } from "./raster.js";

interface FilledShape {
  readonly shape: Shape;
  readonly color: number;
}

/** The shapes to fill. Reads only copies of the city's data, because the city may change before. */
type PaintStep = () => readonly FilledShape[];

const SHAPES_PER_STEP = 64;

/** @param shapesOf runs later, so it must not read mutable city state */
function paintSteps<T>(
  things: readonly T[],
  shapesOf: (thing: T, index: number) => readonly FilledShape[],
): PaintStep[] {
  return Array.from({ length: Math.ceil(things.length / SHAPES_PER_STEP) }, (_, i) => {
    const first = i * SHAPES_PER_STEP;
    return () =>
      things
        .slice(first, first + SHAPES_PER_STEP)
        .flatMap((thing, offset) => shapesOf(thing, first + offset));
  });
}

/** Objects centred up to this far outside the image are painted too. */
const MARGIN_METERS = 80;

/**
 * Paints the map step by step, so that the caller can serve other requests between two steps.
 * @param layer data layer shown instead of zones and building types; null for none
 */
export function* paint(world: World, frame: ImageFrame, layer: Layer | null): Generator<void, Raster> {
  const raster = new Raster(frame);
  const steps = [
    ...(layer ? layerSteps(world, frame, layer) : zoneSteps(world, frame)),
    ...networkSteps(world, raster),
    ...buildingSteps(world, frame, layer !== null),
  ];
  // The city may change while the map is painted: the steps contain copies of it, and the terrain never changes.
  const { terrain } = world;
  yield* paintGround(raster, (x, z) => {
    if (Math.abs(x) > MAP_HALF_METERS || Math.abs(z) > MAP_HALF_METERS) return null;
    const ground = terrain.groundHeight(x, z);
    return { ground, depth: terrain.surfaceHeight(x, z) - ground };
  });
  for (const step of steps) {
    for (const { shape, color } of step()) raster.fill(shape, color);
    yield;
  }
  return raster;
}

/** Ground height at which the colour gradient of the ground begins. */
const PLAIN_METERS = 60;
/** Height above PLAIN_METERS at which the colour gradient of the ground ends. */
const HILL_METERS = 60;
/** Water depth at which the gradient of the water ends. */
const DEEP_METERS = 20;
const PIXELS_PER_PIECE = 2048;

function* paintGround(
  raster: Raster,
  sample: (x: number, z: number) => { ground: number; depth: number } | null,
): Generator<void> {
  const { pixels } = raster.frame;
  for (let i = 0; i < raster.pixels.length; i++) {
    const { x, z } = raster.placeOf(i % pixels, Math.floor(i / pixels));
    const here = sample(x, z);
    if (!here) raster.pixels[i] = featureColor("offMap");
    else if (here.depth > 0) raster.pixels[i] = waterColor(here.depth / DEEP_METERS);
    else raster.pixels[i] = groundColor((here.ground - PLAIN_METERS) / HILL_METERS);
    if (i % PIXELS_PER_PIECE === PIXELS_PER_PIECE - 1) yield;
  }
}

function paintedArea({ center, sizeMeters }: ImageFrame) {
  return squareAround(center, sizeMeters / 2 + MARGIN_METERS);
}

/** Feature to draw for each zone value; null for zones that are not drawn. */
const ZONE_FEATURES: readonly (Feature | null)[] = ZONES.map((zone): Feature | null => {
  if (zone === "Unzoned" || zone === "Distant") return null;
  return zone === "Industrial" || zone === "Office" ? `${zone}Zone` : zone;
});

/** If blocks overlap, the older one owns the ground, so it is painted last. */
function zoneSteps(world: World, frame: ImageFrame): PaintStep[] {
  const view = paintedArea(frame);
  const blocks = world.blocks
    .all()
    .filter(({ position: { x, z } }) => {
      return x >= view.minX && x <= view.maxX && z >= view.minZ && z <= view.maxZ;
    })
    .reverse();
  // Copies all cells into one array, because tens of thousands of small arrays would be slow.
  const copies = new Uint8Array(blocks.reduce((sum, { cells }) => sum + cells.length, 0));
  const starts = new Int32Array(blocks.length);
  let end = 0;
  blocks.forEach(({ cells }, i) => {
    copies.set(cells, end);
    starts[i] = end;
    end += cells.length;
  });
  return paintSteps(blocks, ({ position, angleRadians, rows, cells: { length } }, i) => {
    const start = starts[i] as number;
    return zoneShapes({ position, angleRadians, rows, cells: copies.subarray(start, start + length) });
  });
}

/** Returns one shape if the whole block has one zone, else one per cell. */
function zoneShapes(block: Pick<ZoneBlock, "position" | "angleRadians" | "rows" | "cells">): FilledShape[] {
  const fill = (zone: number, column: number, row: number, columns: number, rows: number) => {
    const feature = ZONE_FEATURES[zone];
    if (!feature) return [];
    // pointInBlock counts from the stored position of the block, which is four columns and rows after its first cell.
    const at = (c: number, r: number) => pointInBlock(block, c - BLOCK_COLUMNS, r - BLOCK_COLUMNS);
    const [far, end] = [column + columns, row + rows];
    return [
      { shape: [at(column, row), at(far, row), at(far, end), at(column, end)], color: featureColor(feature) },
    ];
  };
  const { cells, rows } = block;
  const [first = 0] = cells;
  if (cells.every((cell) => cell === first)) return fill(first, 0, 0, BLOCK_COLUMNS, rows);
  return [...cells].flatMap((cell, i) => fill(cell, i % BLOCK_COLUMNS, Math.floor(i / BLOCK_COLUMNS), 1, 1));
}

function layerSteps(world: World, frame: ImageFrame, layer: Layer): PaintStep[] {
  const { cellMeters, isGood, values } = layerOf(world, layer);
  const view = paintedArea(frame);
  const half = cellMeters / 2;
  return paintSteps(
    values.filter((place) => boxesTouch(squareAround(place, half), view)),
    ({ x, z, value }) => {
      const shape = [
        { x: x - half, z: z - half },
        { x: x + half, z: z - half },
        { x: x + half, z: z + half },
        { x: x - half, z: z + half },
      ];
      return [{ shape, color: ratingColor(isGood ? value / 100 : 1 - value / 100) }];
    },
  );
}

function networkSteps(world: World, raster: Raster): PaintStep[] {
  const view = paintedArea(raster.frame);
  const visible = world.segments.all().filter((segment) => boxesTouch(boxAround(segment, 0), view));
  const below = visible.filter(({ prefab }) => prefab.service === "Road");
  const above = visible.filter(({ prefab }) => prefab.service !== "Road");
  return paintSteps([...below, ...above], ({ prefab, start, end }) => {
    const least = raster.metersPerPixel * (prefab.service === "Road" ? 1.2 : 1.5);
    const width = prefab.service === "Road" ? prefab.widthMeters * 0.75 : 3;
    return [
      {
        shape: thickLine(start, end, Math.max(width, least)),
        color: featureColor(networkClass(prefab.name, prefab.service)),
      },
    ];
  });
}

function buildingSteps(world: World, frame: ImageFrame, isPlain: boolean): PaintStep[] {
  const view = paintedArea(frame);
  const visible = world.buildings
    .all()
    .filter(({ position, prefab }) => !prefab.helper && boxesTouch(squareAround(position, 0), view));
  const colors = visible.map((building) => featureColor(isPlain ? "plain" : buildingFeature(building)));
  return paintSteps(visible, ({ position, angleDegrees, prefab }, i) => {
    return [{ shape: cornersOf({ position, angleDegrees, prefab }), color: colors[i] as number }];
  });
}

function buildingFeature(building: Building): Feature {
  if (isRuin(building)) return "ruin";
  return isGrowable(building) ? (building.prefab.service as GrowableService) : "service";
}
