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
import {
  CELL_METERS,
  distance,
  type Footprint,
  footprintRadius,
  footprintsOverlap,
  squareAround,
} from "../../geometry.js";
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
import { MAP_HALF_METERS } from "../state/terrain.js";
import type { World } from "../state/world.js";

const MIN_SEGMENT_METERS = 4;
/** Footprints may reach so far into each other. */
const FOOTPRINT_TOLERANCE_METERS = 1;

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
  requirePlaceable(world, old.prefab, command.position, angleDegrees, old);
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
  moved?: SimBuilding,
): void {
  if (prefab.blocked) {
    throw new CommandRefusedError("blocked-prefab", `"${prefab.name}" is of a known broken asset family`);
  }
  requireOnMap(position);
  if (!Number.isFinite(angleDegrees)) {
    throw new CommandRefusedError("bad-value", `The angle must be a number of degrees, not ${angleDegrees}`);
  }
  if (!prefab.helper) requireFreeGround(world, { prefab, position, angleDegrees }, moved);
  world.buildings.requireRoomFor(1);
}

/** Service buildings stand on ground of their own; on homes and the like they are built. */
function requireFreeGround(world: World, site: Footprint, except: SimBuilding | undefined): void {
  const reach = squareAround(site.position, footprintRadius(site));
  for (const other of world.buildings.near(reach)) {
    if (other === except || other.prefab.growable || other.prefab.helper) continue;
    if (footprintsOverlap(site, other, FOOTPRINT_TOLERANCE_METERS)) {
      const message = `The ground is taken by building ${other.id}, a ${other.prefab.displayName}`;
      throw new CommandRefusedError("bad-value", message);
    }
  }
}

/** @throws CommandRefusedError naming the coordinate that lies beyond the map */
export function requireOnMap({ x, z }: GroundPoint): void {
  for (const coordinate of [x, z]) {
    if (!(Math.abs(coordinate) <= MAP_HALF_METERS)) {
      const message = `${coordinate} lies off the map, which reaches ${MAP_HALF_METERS} m from the origin`;
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
