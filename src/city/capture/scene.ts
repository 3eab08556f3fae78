/** What of the city a captured map shows, in the order in which it is painted. */
import type { Building, City, NetSegment } from "../game.js";
import { boxAround, boxesTouch, CELL_METERS, cornersOf, squareAround } from "../geometry.js";
import { FLAG, type Layer, ZONES } from "../terms.js";
import { colorOf, groundColor, scaleColor, type Thing, waterColor } from "./palette.js";
import { type Frame, Raster, type Shape, stripe } from "./raster.js";

interface Filling {
  readonly shape: Shape;
  readonly color: number;
}

/** How far beyond the picture something may stand and still show. */
const MARGIN_METERS = 80;

/**
 * Paints piece by piece, so that it can be put aside in between.
 * @param layer whose values are shown in place of zones and kinds of buildings; null for none
 */
export function* paint(city: City, frame: Frame, layer: Layer | null): Generator<void, Raster> {
  const raster = new Raster(frame);
  const fillings = layer ? layerFillings(city, frame, layer) : zoneFillings(city, frame);
  fillings.push(...networkFillings(city, raster), ...buildingFillings(city, frame, layer !== null));
  // From here on nothing of the city is looked at but its ground, which never changes.
  const { groundHeight, mapHalfMeters } = city;
  yield* paintGround(raster, (x, z) => {
    if (Math.abs(x) > mapHalfMeters || Math.abs(z) > mapHalfMeters) return null;
    const ground = groundHeight(x, z);
    return { ground, depth: city.surfaceHeight(x, z) - ground };
  });
  for (const [i, { shape, color }] of fillings.entries()) {
    raster.fill(shape, color);
    if (i % 64 === 63) yield;
  }
  return raster;
}

/** The plain lies at 60 m; hills have their full colour this much higher, water at this depth. */
const PLAIN_METERS = 60;
const HILL_METERS = 60;
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
    if (!here) raster.pixels[i] = colorOf("offMap");
    else if (here.depth > 0) raster.pixels[i] = waterColor(here.depth / DEEP_METERS);
    else raster.pixels[i] = groundColor((here.ground - PLAIN_METERS) / HILL_METERS);
    if (i % PIXELS_PER_PIECE === PIXELS_PER_PIECE - 1) yield;
  }
}

function viewOf({ center, sizeMeters }: Frame) {
  return squareAround(center, sizeMeters / 2 + MARGIN_METERS);
}

/** By zone value. */
const ZONE_THINGS: readonly (Thing | null)[] = ZONES.map((zone): Thing | null => {
  if (zone === "Unzoned" || zone === "Distant") return null;
  return zone === "Industrial" || zone === "Office" ? `${zone}Zone` : zone;
});

/** The older block owns the ground where blocks overlap, so it is painted last. */
function zoneFillings(city: City, frame: Frame): Filling[] {
  const view = viewOf(frame);
  const fillings: Filling[] = [];
  for (const { position, angleRadians, rows, cells } of city.zoneBlocks().toReversed()) {
    if (!boxesTouch(squareAround(position, 0), view)) continue;
    const [cos, sin] = [Math.cos(angleRadians), Math.sin(angleRadians)];
    const at = (depth: number, along: number) => ({
      x: position.x + CELL_METERS * (depth * cos + along * sin),
      z: position.z + CELL_METERS * (depth * sin - along * cos),
    });
    const quad = (depth: number, along: number, columns: number, lines: number) => [
      at(depth, along),
      at(depth + columns, along),
      at(depth + columns, along + lines),
      at(depth, along + lines),
    ];
    const [first] = cells;
    if (cells.every((cell) => cell === first)) {
      const thing = ZONE_THINGS[first ?? 0];
      if (thing) fillings.push({ shape: quad(-4, -4, 4, rows), color: colorOf(thing) });
      continue;
    }
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < 4; column++) {
        const thing = ZONE_THINGS[cells[row * 4 + column] ?? 0];
        if (!thing) continue;
        fillings.push({ shape: quad(column - 4, row - 4, 1, 1), color: colorOf(thing) });
      }
    }
  }
  return fillings;
}

function layerFillings(city: City, frame: Frame, layer: Layer): Filling[] {
  const { cellMeters, isGood, values } = city.layer(layer);
  const view = viewOf(frame);
  return values.flatMap(({ x, z, value }): Filling[] => {
    if (!boxesTouch(squareAround({ x, z }, cellMeters / 2), view)) return [];
    const half = cellMeters / 2;
    const shape = [
      { x: x - half, z: z - half },
      { x: x + half, z: z - half },
      { x: x + half, z: z + half },
      { x: x - half, z: z + half },
    ];
    return [{ shape, color: scaleColor(isGood ? value / 100 : 1 - value / 100) }];
  });
}

function networkFillings(city: City, raster: Raster): Filling[] {
  const view = viewOf(raster.frame);
  const visible = city.segments().filter((segment) => boxesTouch(boxAround(segment, 0), view));
  const below = visible.filter(({ prefab }) => prefab.service === "Road");
  const above = visible.filter(({ prefab }) => prefab.service !== "Road");
  return [...below, ...above].map((segment) => {
    const least = raster.metersPerPixel * (segment.prefab.service === "Road" ? 1.2 : 1.5);
    const width = segment.prefab.service === "Road" ? segment.prefab.widthMeters * 0.75 : 3;
    return {
      shape: stripe(segment.start, segment.end, Math.max(width, least)),
      color: colorOf(thingOf(segment)),
    };
  });
}

function thingOf({ prefab }: NetSegment): Thing {
  const { name, service } = prefab;
  if (service === "Water") return name.startsWith("Heating") ? "heatPipe" : "waterPipe";
  if (service === "Electricity") return "powerLine";
  if (service === "PublicTransport") return "track";
  if (service !== "Road") return "path";
  if (name.startsWith("Highway")) return "highway";
  if (name.startsWith("Large")) return "largeRoad";
  return name.startsWith("Medium") ? "mediumRoad" : "smallRoad";
}

function buildingFillings(city: City, frame: Frame, isPlain: boolean): Filling[] {
  const view = viewOf(frame);
  return city
    .buildings()
    .filter(({ position, prefab }) => !prefab.helper && boxesTouch(squareAround(position, 0), view))
    .map((building) => {
      const [a, b, c, d] = cornersOf(building);
      const shape = [a, b, d, c].filter((corner) => corner !== undefined);
      return { shape, color: colorOf(isPlain ? "plain" : kindOf(building)) };
    });
}

function kindOf({ prefab, flags }: Building): Thing {
  if ((flags & (FLAG.Abandoned | FLAG.BurnedDown | FLAG.Collapsed)) !== 0) return "ruin";
  const { service } = prefab;
  const isGrown =
    service === "Residential" || service === "Commercial" || service === "Industrial" || service === "Office";
  return isGrown ? service : "service";
}
