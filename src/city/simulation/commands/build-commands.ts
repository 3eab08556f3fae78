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
  type SetBuildingActive,
  type SetBuildingActiveResult,
  type SetBuildingEmptying,
} from "../../game.js";
import {
  distance,
  type Footprint,
  footprintRadius,
  footprintsOverlap,
  squareAround,
} from "../../geometry.js";
import { FLAG, flagNames } from "../../terms.js";
import { BLOCKED_PREFAB, findBuildingPrefab, type SimBuildingPrefab } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab } from "../catalogue/network-prefabs.js";
import { createBuilding, DOWN, removeBuilding, setProblem } from "../fabric/buildings.js";
import { findReusableNode, removeNode, removeSegment, requireRoom } from "../fabric/network.js";
import { requireFunds } from "../life/finance.js";
import { reportOpening } from "../life/messages.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { buildPlan, costOf, crossedBy, nearestNode, type PlannedEnd, placeOf } from "./network-plan.js";
import {
  requireId,
  requireLength,
  requireOnMap,
  requirePrefab,
  requireSnapDistance,
} from "./requirements.js";

/** Footprints may reach so far into each other. */
const FOOTPRINT_TOLERANCE_METERS = 1;

export function buildNetwork(world: World, command: BuildNetwork): BuildNetworkResult {
  const prefab = requirePrefab(findNetworkPrefab, "network", command.prefab);
  const { snapDistance } = command;
  requireOnMap(command.start);
  requireOnMap(command.end);
  requireLength(command.start, command.end);
  if (snapDistance !== null) requireSnapDistance(snapDistance);
  const endAt = (point: GroundPoint): PlannedEnd => {
    const node =
      snapDistance === null
        ? findReusableNode(world, prefab, point)
        : nearestNode(world, prefab, point, snapDistance);
    return { point, node, reused: node !== undefined };
  };
  const link = { prefab, from: endAt(command.start), to: endAt(command.end) };
  const { from, to } = link;
  requireRoom(world, from.node, to.node);
  const cost = costOf(link);
  const meters = distance(placeOf(from), placeOf(to));
  requireFunds(world, cost, `A ${prefab.displayName} of ${meters.toFixed(0)} m`);
  const plan = {
    cost,
    reusedStartNode: from.reused,
    reusedEndNode: to.reused,
    crossedSegmentIds: crossedBy(world, link).map(({ id }) => id),
  };
  if (command.dryRun) return { ...plan, built: null };
  const [segmentId] = buildPlan(
    world,
    { ends: [from, to], links: [link], skippedSegments: 0, cost },
    command.name,
  );
  const ids = { startNodeId: from.node?.id as number, endNodeId: to.node?.id as number };
  return { ...plan, built: { segmentId: segmentId as number, ...ids } };
}

export function placeBuilding(world: World, command: PlaceBuilding): PlaceBuildingResult {
  const prefab = requirePrefab(findBuildingPrefab, "building", command.prefab);
  requirePlaceable(world, prefab, command.position, command.angleDegrees);
  requireFunds(world, prefab.cost, `A ${prefab.displayName}`);
  if (command.dryRun) return { prefab, cost: prefab.cost, buildingId: null };
  const building = createBuilding(world, prefab, command.position, command.angleDegrees);
  world.ledger.book("Construction", prefab.cost);
  reportOpening(world, prefab);
  return { prefab, cost: prefab.cost, buildingId: building.id };
}

/** The share of its price that it costs to move a building. */
const RELOCATION_SHARE = 0.2;

export function moveBuilding(world: World, command: MoveBuilding): MoveBuildingResult {
  const old = requireBuilding(world, command.id);
  const angleDegrees = command.angleDegrees ?? old.angleDegrees;
  requirePlaceable(world, old.prefab, command.position, angleDegrees, old);
  const cost = RELOCATION_SHARE * old.prefab.cost;
  requireFunds(world, cost, `Moving a ${old.prefab.displayName}`);
  if (command.dryRun) return { prefab: old.prefab, moved: null };
  const moved = createBuilding(world, old.prefab, command.position, angleDegrees);
  Object.assign(moved, { stored: old.stored, fuel: old.fuel });
  world.ledger.book("Construction", cost);
  removeBuilding(world, old);
  return { prefab: old.prefab, moved: { newBuildingId: moved.id, position: moved.position } };
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

/** @throws CommandRefusedError for a building that stores nothing */
export function setBuildingEmptying(world: World, command: SetBuildingEmptying): SetBuildingActiveResult {
  const building = requireBuilding(world, command.id);
  const { prefab, flags: before } = building;
  if (prefab.civic?.storage === undefined) {
    const message = `Building ${command.id}, a ${prefab.displayName}, holds nothing to be emptied`;
    throw new CommandRefusedError("bad-value", message);
  }
  building.flags = command.emptying ? before | FLAG.Downgrading : before & ~FLAG.Downgrading;
  return { prefab, beforeFlags: flagNames(before), afterFlags: flagNames(building.flags) };
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

function requireBuilding(world: World, id: number): SimBuilding {
  requireId(id);
  return world.buildings.require(id);
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
