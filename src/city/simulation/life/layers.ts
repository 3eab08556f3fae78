/** Data layers of the map. Values are 0 to 100. */
import { distance, type GroundPoint, lengthOf, pointAlong, squareKey } from "../../geometry.js";
import type { Layer } from "../../terms.js";
import { COVERAGES, type Coverage } from "../catalogue/building-prefabs.js";
import { isRuin } from "../fabric/buildings.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { nearestRoadId, pollutionAt, serviceAt } from "./services.js";
import { trafficOf } from "./traffic.js";

const SQUARE_METERS = 64;

interface Measure {
  readonly isGood: boolean;
  /** Value of a building. A layer has either `of` or `at`. The traffic layer has neither. */
  readonly of?: (building: Building) => number;
  /** Value at a place, which is the centre of a grid square. */
  readonly at?: (world: World, place: GroundPoint) => number;
}

const MEASURES: Readonly<Record<Layer, Measure>> = {
  traffic: { isGood: false },
  power: { isGood: true, of: ({ supply }) => (supply.power ? 100 : 0) },
  water: { isGood: true, of: ({ supply }) => (supply.water ? 50 : 0) + (supply.sewage ? 50 : 0) },
  landValue: { isGood: true, of: ({ landValue }) => landValue },
  happiness: { isGood: true, of: ({ happiness }) => happiness },
  crime: { isGood: false, of: ({ crime }) => crime },
  garbage: { isGood: false, of: ({ garbage }) => garbage },
  pollution: { isGood: false, at: pollutionAt },
  health: served("health"),
  fire: served("fire"),
  police: served("police"),
  education: served("elementary", "highSchool", "university"),
  leisure: served("leisure"),
};

/** Measures the mean quality of these services at a place. */
function served(...kinds: Coverage[]): Measure {
  const at = (world: World, place: GroundPoint) => {
    const roadId = nearestRoadId(world, place);
    const qualities = kinds.map((kind) => serviceAt(world, place, roadId, kind)?.quality ?? 0);
    return (100 * qualities.reduce((sum, quality) => sum + quality, 0)) / kinds.length;
  };
  return { isGood: true, at };
}

/** A value for each square with growables; in the traffic layer, for each square with roads. */
export function layerOf(world: World, layer: Layer) {
  const { isGood, of, at } = MEASURES[layer];
  const cells = new Map<number, { center: GroundPoint; sum: number; count: number }>();
  const add = (place: GroundPoint, value: number) => {
    const column = Math.floor(place.x / SQUARE_METERS);
    const row = Math.floor(place.z / SQUARE_METERS);
    const key = squareKey(column, row);
    const cell = cells.get(key);
    if (cell) {
      cell.sum += value;
      cell.count++;
      return;
    }
    const center = { x: (column + 0.5) * SQUARE_METERS, z: (row + 0.5) * SQUARE_METERS };
    cells.set(key, { center, sum: value, count: 1 });
  };
  if (layer === "traffic") sampleRoads(world, add);
  else sampleBuildings(world, of, add);
  const values = [...cells.values()].map(({ center, sum, count }) => {
    return { x: center.x, z: center.z, value: at ? at(world, center) : sum / count };
  });
  return { cellMeters: SQUARE_METERS, isGood, values };
}

type AddSample = (place: GroundPoint, value: number) => void;

function sampleBuildings(world: World, of: Measure["of"], add: AddSample): void {
  for (const building of world.buildings.values()) {
    if (!building.prefab.growable || isRuin(building)) continue;
    add(building.position, of?.(building) ?? 0);
  }
}

/** Adds samples of the traffic along each road, at most half a grid square apart. */
function sampleRoads(world: World, add: AddSample): void {
  for (const segment of world.segments.values()) {
    const value = trafficOf(segment)?.densityPercent;
    if (value === undefined) continue;
    const steps = Math.ceil((2 * lengthOf(segment)) / SQUARE_METERS);
    for (let i = 0; i < steps; i++) add(pointAlong(segment, (i + 0.5) / steps), value);
  }
}

/** Quality of each service at a place. */
export function coverageAt(world: World, place: GroundPoint) {
  const roadId = nearestRoadId(world, place);
  return COVERAGES.map((service) => {
    const served = serviceAt(world, place, roadId, service);
    return {
      service,
      providerId: served?.provider.id ?? 0,
      distanceMeters: served ? distance(served.provider.position, place) : null,
      quality: served?.quality ?? 0,
    };
  });
}
