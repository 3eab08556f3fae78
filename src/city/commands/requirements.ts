/** Checks that commands share. All of them throw RefusedError. */
import { distance, type GroundPoint, type Position } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { BUILDING_PREFABS, type BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { NETWORK_PREFABS } from "../simulation/catalogue/network-prefabs.js";
import type { Building } from "../simulation/state/entities.js";
import { MAP_HALF_METERS } from "../simulation/state/terrain.js";
import type { World } from "../simulation/state/world.js";

/** Number of similar names in a refusal, and the least share of equal letter pairs that makes names similar. */
const MOST_NEAR_NAMES = 3;
const SIMILAR = 0.4;
const MIN_SEGMENT_METERS = 4;
const MAX_SNAP_METERS = 64;

export function requirePrefab<T>(
  find: (name: string) => T | undefined,
  kind: "building" | "network",
  name: string,
): T {
  const prefab = find(name);
  if (prefab) return prefab;
  const prefabs = kind === "building" ? BUILDING_PREFABS.filter(({ blocked }) => !blocked) : NETWORK_PREFABS;
  const near = nearNames(name, prefabs).map((each) => `"${each}"`);
  const hint = near.length === 0 ? "" : `; near names are ${near.join(", ")}`;
  throw new RefusedError(`No ${kind} prefab is named "${name}"${hint}; GET /prefabs/${kind}s lists all`);
}

/** Names of prefabs that share the most letter pairs with a name, in their own or their displayed name. */
function nearNames(name: string, prefabs: readonly { name: string; displayName: string }[]): string[] {
  const wanted = letterPairs(name);
  const likeness = (other: string) => {
    const pairs = letterPairs(other);
    const shared = [...wanted].filter((pair) => pairs.has(pair)).length;
    return (2 * shared) / Math.max(wanted.size + pairs.size, 1);
  };
  return prefabs
    .map((prefab) => ({
      name: prefab.name,
      score: Math.max(likeness(prefab.name), likeness(prefab.displayName)),
    }))
    .filter(({ score }) => score >= SIMILAR)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST_NEAR_NAMES)
    .map((each) => each.name);
}

function letterPairs(text: string): Set<string> {
  const letters = text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return new Set(Array.from({ length: Math.max(letters.length - 1, 0) }, (_, i) => letters.slice(i, i + 2)));
}

export function requireId(id: number): void {
  if (!Number.isInteger(id) || id < 1 || id > 65_535) {
    throw new RefusedError(`The id must be an integer from 1 to 65535, not ${id}`);
  }
}

export function requireOnMap({ x, z }: GroundPoint): void {
  for (const coordinate of [x, z]) {
    if (!(Math.abs(coordinate) <= MAP_HALF_METERS)) {
      const message = `${coordinate.toFixed(0)} lies off the map, which reaches ${MAP_HALF_METERS} m from the origin`;
      throw new RefusedError(message);
    }
  }
}

/** Rejects segments that are too short. The length includes the height difference. */
export function requireMinLength(start: Position, end: Position): void {
  const length = Math.hypot(end.x - start.x, end.y - start.y, end.z - start.z);
  if (!(length >= MIN_SEGMENT_METERS)) {
    const message = `The segment is too short: ${length.toFixed(2)} m, at least ${MIN_SEGMENT_METERS} m are needed`;
    throw new RefusedError(message);
  }
  if (distance(start, end) === 0) {
    throw new RefusedError("The segment is too short: both ends are at the same place");
  }
}

/** Requires a number within bounds. The error message contains the bounds. */
export function requireWithin(name: string, value: number, least: number, most: number): void {
  if (value >= least && value <= most) return;
  throw new RefusedError(`${name} must be ${least} to ${most}, not ${value}`);
}

export function requireWholeWithin(name: string, value: number, least: number, most: number): void {
  requireWithin(name, value, least, most);
  if (Number.isInteger(value)) return;
  throw new RefusedError(`${name} must be a whole number, not ${value}`);
}

export function requireSnapDistance(meters: number): void {
  requireWithin("snapDistance", meters, 0, MAX_SNAP_METERS);
}

export function requireBuilding(world: World, id: number): Building {
  requireId(id);
  return world.buildings.require(id);
}

/** Requires a prefab that can be placed, a place on the map, and room for one more building. */
export function requirePlaceable(world: World, { name, blocked }: BuildingPrefab, position: GroundPoint) {
  if (blocked) throw new RefusedError(`"${name}" is one of the game's broken assets and cannot be placed`);
  requireOnMap(position);
  world.buildings.requireRoomFor(1);
}
