/** Commands that build and clear: networks, buildings, the bulldozer. */
import {
  type BuildNetwork,
  type BuildNetworkResult,
  type Bulldoze,
  type BulldozeResult,
  CommandRefusedError,
  type DisableBlockedAssetsResult,
  type GroundPoint,
  type MoveBuilding,
  type MoveBuildingResult,
  type PlaceBuilding,
  type PlaceBuildingResult,
  type Position,
  type SetBuildingActive,
  type SetBuildingActiveResult,
} from "../../game.js";
import { CELL_METERS, distance } from "../../geometry.js";
import { FLAG, flagNames } from "../../terms.js";
import { BLOCKED_PREFAB, findBuildingPrefab, type SimBuildingPrefab } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab, type SimNetworkPrefab } from "../catalogue/network-prefabs.js";
import { createBuilding, DOWN, removeBuilding, setProblem } from "../fabric/buildings.js";
import {
  createNode,
  createSegment,
  findReusableNode,
  removeNode,
  removeSegment,
  requireRoom,
} from "../fabric/network.js";
import { requireFunds } from "../life/finance.js";
import { reportFirstRoad, reportOpening } from "../life/messages.js";
import type { SimBuilding, SimNode } from "../state/entities.js";
import type { World } from "../state/world.js";

const MIN_SEGMENT_METERS = 4;
/** Far beyond the map, but near enough that lengths and areas stay exact. */
const FARTHEST_COORDINATE_METERS = 100_000;

export function buildNetwork(world: World, command: BuildNetwork): BuildNetworkResult {
  const prefab = requirePrefab(findNetworkPrefab, "network", command.prefab);
  requireOnMap(command.start);
  requireOnMap(command.end);
  requireLength(command.start, command.end);
  const start = findReusableNode(world, prefab, command.start);
  const end = findReusableNode(world, prefab, command.end);
  requireRoom(world, start, end);
  const cost = (prefab.costPerCell * distance(command.start, command.end)) / CELL_METERS;
  requireFunds(
    world,
    cost,
    `A ${prefab.displayName} of ${distance(command.start, command.end).toFixed(0)} m`,
  );
  if (command.dryRun) return { built: null };
  const hadStreets = world.blocks.size > 0;
  const startNode = start ?? createNodeOnSurface(world, prefab, command.start);
  const endNode = end ?? createNodeOnSurface(world, prefab, command.end);
  const segment = createSegment(world, prefab, startNode, endNode, command.name);
  world.ledger.book("Construction", cost);
  if (prefab.zoning && !hadStreets) reportFirstRoad(world, segment.name);
  return { built: { segmentId: segment.id, startNodeId: startNode.id, endNodeId: endNode.id } };
}

export function placeBuilding(world: World, command: PlaceBuilding): PlaceBuildingResult {
  const prefab = requirePrefab(findBuildingPrefab, "building", command.prefab);
  requirePlaceable(world, prefab, command.position, command.angleDegrees);
  requireFunds(world, prefab.cost, `A ${prefab.displayName}`);
  if (command.dryRun) return { prefab, buildingId: null };
  const building = createBuilding(world, prefab, command.position, command.angleDegrees);
  world.ledger.book("Construction", prefab.cost);
  reportOpening(world, prefab);
  return { prefab, buildingId: building.id };
}

export function moveBuilding(world: World, command: MoveBuilding): MoveBuildingResult {
  const old = requireBuilding(world, command.id);
  const angleDegrees = command.angleDegrees ?? old.angleDegrees;
  requirePlaceable(world, old.prefab, command.position, angleDegrees);
  if (command.dryRun) return { prefab: old.prefab, moved: null };
  const { id, position } = createBuilding(world, old.prefab, command.position, angleDegrees);
  removeBuilding(world, old);
  return { prefab: old.prefab, moved: { newBuildingId: id, position } };
}

export function setBuildingActive(world: World, command: SetBuildingActive): SetBuildingActiveResult {
  const building = requireBuilding(world, command.id);
  const before = building.flags;
  const usable = (before & FLAG.Completed) !== 0 && (before & (DOWN | FLAG.Flooded)) === 0;
  building.switchedOff = !command.active;
  building.flags = command.active && usable ? before | FLAG.Active : before & ~FLAG.Active;
  setProblem(building, "TurnedOff", building.switchedOff, world.frame);
  return { prefab: building.prefab, beforeFlags: flagNames(before), afterFlags: flagNames(building.flags) };
}

export function disableBlockedAssets(world: World): DisableBlockedAssetsResult {
  const wasEnabled = world.blockedAssetEnabled;
  world.blockedAssetEnabled = false;
  const { name } = BLOCKED_PREFAB;
  const asset = { package: "Block Services", name, fullName: `Block Services.${name}` };
  return { assets: [{ ...asset, path: "embedded:Block Services.crp", wasEnabled, isEnabled: false }] };
}

export function bulldoze(world: World, command: Bulldoze): BulldozeResult {
  const { entityType, id } = command;
  const remove = removalOf(world, command);
  if (!command.dryRun) remove();
  return { entityType, id };
}

function removalOf(world: World, { entityType, id, keepNodes }: Bulldoze): () => void {
  requireId(id);
  switch (entityType) {
    case "building": {
      const building = world.buildings.require(id);
      return () => removeBuilding(world, building);
    }
    case "netSegment": {
      const segment = world.segments.require(id);
      return () => removeSegment(world, segment, keepNodes);
    }
    case "netNode": {
      const node = world.nodes.require(id);
      return () => removeNode(world, node);
    }
    default: {
      const message = `Unknown entity type "${entityType}"; it must be building, netSegment or netNode`;
      throw new CommandRefusedError("unknown-entity-type", message);
    }
  }
}

function requirePrefab<T>(find: (name: string) => T | undefined, kind: string, name: string): T {
  const prefab = find(name);
  if (!prefab) throw new CommandRefusedError("unknown-prefab", `No ${kind} prefab is named "${name}"`);
  return prefab;
}

function requireBuilding(world: World, id: number): SimBuilding {
  requireId(id);
  return world.buildings.require(id);
}

function requireId(id: number): void {
  if (!Number.isInteger(id) || id < 1 || id > 65_535) {
    throw new CommandRefusedError("unknown-id", `The id must be an integer from 1 to 65535, not ${id}`);
  }
}

function requirePlaceable(
  world: World,
  prefab: SimBuildingPrefab,
  position: GroundPoint,
  angleDegrees: number,
): void {
  if (prefab.blocked) {
    throw new CommandRefusedError("blocked-prefab", `"${prefab.name}" is of a known broken asset family`);
  }
  requireOnMap(position);
  if (!Number.isFinite(angleDegrees)) {
    throw new CommandRefusedError("bad-value", `The angle must be a number of degrees, not ${angleDegrees}`);
  }
  world.buildings.requireRoomFor(1);
}

function requireOnMap({ x, z }: GroundPoint): void {
  for (const coordinate of [x, z]) {
    if (!(Math.abs(coordinate) <= FARTHEST_COORDINATE_METERS)) {
      const message = `A coordinate must lie within ${FARTHEST_COORDINATE_METERS} m of the origin, not at ${coordinate}`;
      throw new CommandRefusedError("bad-value", message);
    }
  }
}

/** The heights as given count, in three dimensions, before the city puts its own in their place. */
function requireLength(start: Position, end: Position): void {
  const length = Math.hypot(end.x - start.x, end.y - start.y, end.z - start.z);
  if (!(length >= MIN_SEGMENT_METERS)) {
    const message = `The segment is too short: ${length.toFixed(2)} m, at least ${MIN_SEGMENT_METERS} m are needed`;
    throw new CommandRefusedError("too-short", message);
  }
  if (distance(start, end) === 0) {
    throw new CommandRefusedError("too-short", "The segment is too short: both ends are at the same place");
  }
}

function createNodeOnSurface(world: World, prefab: SimNetworkPrefab, { x, z }: GroundPoint): SimNode {
  return createNode(world, prefab, { x, y: world.terrain.surfaceHeight(x, z), z }, false);
}
