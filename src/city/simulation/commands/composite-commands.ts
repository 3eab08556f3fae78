/** Commands of many parts: streets as a grid, a neighborhood with its zones, a link to what is there, a clearance. */
import type {
  BuildGrid,
  BuildGridResult,
  BuildNeighborhood,
  BuildNeighborhoodResult,
  BulldozeArea,
  BulldozeAreaResult,
  Connect,
  Connection,
  ConnectResult,
  GridShape,
  ZonedBlock,
} from "../../composites.js";
import { CommandRefusedError, type GroundPoint } from "../../game.js";
import { distance, squareAround } from "../../geometry.js";
import { findNetworkPrefab, type SimNetworkPrefab } from "../catalogue/network-prefabs.js";
import { removeBuilding } from "../fabric/buildings.js";
import { removeSegment } from "../fabric/network.js";
import { components } from "../fabric/reach.js";
import type { SimNode } from "../state/entities.js";
import type { World } from "../state/world.js";
import { type Grid, gridAround, gridFrom, zonesOfBlocks } from "./grid.js";
import {
  carryOut,
  nearestNode,
  type PlannedEnd,
  type PlannedLink,
  placeOf,
  planEnd,
  planNetwork,
} from "./network-plan.js";
import {
  requireOnMap,
  requirePrefab,
  requireSnapDistance,
  requireWholeWithin,
  requireWithin,
} from "./requirements.js";
import { MAX_PAINT_RADIUS_METERS, requireZone, setZone } from "./zone-commands.js";

const MAX_GRID_BLOCKS = 400;
const MAX_NEIGHBORHOOD_BLOCKS = 144;
const SPACING_METERS = { least: 32, most: 256 };
const MAX_CONNECTION_METERS = 1000;

export function buildGrid(world: World, command: BuildGrid): BuildGridResult {
  const prefab = requireGrid(command, MAX_GRID_BLOCKS);
  const grid = gridFrom(command.origin, command);
  const { ends, links } = planGrid(world, command, prefab, grid);
  const plan = planNetwork(world, ends, links, "The grid");
  const { bounds, blockCenters } = grid;
  return { ...carryOut(world, plan, command), bounds, blockCenters };
}

/** Everything is checked before anything is built: streets, the way to the town, and zones. */
export function buildNeighborhood(world: World, command: BuildNeighborhood): BuildNeighborhoodResult {
  const prefab = requireGrid(command, MAX_NEIGHBORHOOD_BLOCKS);
  const zoneRadius = command.zoneRadius ?? command.spacing / 2;
  requireWithin("zoneRadius", zoneRadius, 1, MAX_PAINT_RADIUS_METERS);
  requireMix(command.zoneMix);
  const grid = gridAround(command.center, command);
  const { ends, links } = planGrid(world, command, prefab, grid);
  const way = command.connectTo === null ? null : planWay(world, command, prefab, ends);
  const wanted = way?.link ? [...links, way.link] : links;
  const plan = planNetwork(world, ends, wanted, "The neighborhood");
  const built = carryOut(world, plan, command);
  const { bounds, blockCenters } = grid;
  const connection = way && tellWay(way, way.link ? built.segmentIds.slice(-1) : []);
  return {
    ...built,
    bounds,
    blockCenters,
    connection,
    zoneRadius,
    blocks: zoneGrid(world, command, grid, zoneRadius),
  };
}

function zoneGrid(world: World, command: BuildNeighborhood, grid: Grid, radius: number): ZonedBlock[] {
  const { dryRun, preserveOccupied, columns } = command;
  const zones = zonesOfBlocks(command);
  return grid.blockCenters.map((center, index) => {
    const zone = zones[index] as string;
    const result = setZone(world, { type: "set-zone", dryRun, preserveOccupied, zone, center, radius });
    const [column, row] = [index % columns, Math.floor(index / columns)];
    return { index, column, row, center, zone, changedCells: result.changedCells };
  });
}

export function buildConnection(world: World, command: Connect): ConnectResult {
  const prefab = requirePrefab(findNetworkPrefab, "network", command.prefab);
  requireSnapDistance(command.snapDistance);
  requireWithin("maxDistance", command.maxDistance, 1, MAX_CONNECTION_METERS);
  const from = planEnd(world, prefab, command.from, command.snapDistance);
  const way = wayFrom(world, prefab, from, command.toService, command.maxDistance);
  const plan = planNetwork(world, way.link ? [from] : [], way.link ? [way.link] : [], "The connection");
  const built = carryOut(world, plan, command);
  return { ...built, ...tellWay(way, built.segmentIds) };
}

/** Clears what lies in a circle; the ends of the map's own highways are out of reach of any town. */
export function bulldozeArea(world: World, command: BulldozeArea): BulldozeAreaResult {
  const { center, radius, service, keepNodes } = command;
  requireOnMap(center);
  requireWithin("radius", radius, 1, MAX_PAINT_RADIUS_METERS);
  const isWanted = ({ prefab }: { prefab: { service: string } }) =>
    service === "" || prefab.service === service;
  const isInside = (place: GroundPoint) => distance(place, center) <= radius;
  const circle = squareAround(center, radius);
  const buildings = command.entityTypes.includes("building")
    ? world.buildings.near(circle).filter((building) => isWanted(building) && isInside(building.position))
    : [];
  const segments = command.entityTypes.includes("netSegment")
    ? world.segments
        .near(circle)
        .filter((each) => isWanted(each) && isInside(each.start) && isInside(each.end))
    : [];
  const result = { buildingIds: buildings.map(({ id }) => id), segmentIds: segments.map(({ id }) => id) };
  if (command.dryRun) return result;
  for (const building of buildings) removeBuilding(world, building);
  for (const segment of segments) removeSegment(world, segment, keepNodes);
  return result;
}

/** From an end of what is planned to a node that is there; no link where they are joined already. */
interface Way {
  readonly from: PlannedEnd;
  readonly target: SimNode;
  readonly link: PlannedLink | null;
}

function tellWay({ from, target, link }: Way, segmentIds: readonly number[]): Connection {
  return {
    alreadyConnected: link === null,
    nodeId: from.node?.id ?? 0,
    targetNodeId: target.id,
    targetPosition: { x: target.position.x, z: target.position.z },
    distance: distance(placeOf(from), target.position),
    segmentIds,
  };
}

function wayFrom(
  world: World,
  prefab: SimNetworkPrefab,
  from: PlannedEnd,
  service: string,
  maxMeters: number,
): Way {
  const part = components(world, prefab.carries);
  const own = from.node && part[from.node.id];
  const isForeign = (node: SimNode) =>
    node.prefab.service === service &&
    node !== from.node &&
    (own === undefined || own === 0 || part[node.id] !== own);
  const target = nearestNode(world, prefab, placeOf(from), maxMeters, isForeign);
  if (target) return { from, target, link: linkTo(prefab, from, target) };
  if (from.node?.prefab.service === service) return { from, target: from.node, link: null };
  const message = `No ${service} node that a ${prefab.displayName} could end on lies within ${maxMeters} m`;
  throw new CommandRefusedError("nothing-matched", message);
}

/** From the crossing that has the shortest way; a grid that shares a node with the town is joined to it. */
function planWay(
  world: World,
  { connectTo, connectMaxDistance }: BuildNeighborhood,
  prefab: SimNetworkPrefab,
  ends: readonly PlannedEnd[],
): Way {
  requireWithin("connectMaxDistance", connectMaxDistance, 1, MAX_CONNECTION_METERS);
  const shared = ends.find(({ node }) => node && node.segmentIds.length > 0);
  if (shared?.node) return { from: shared, target: shared.node, link: null };
  const isPlace = typeof connectTo === "object" && connectTo !== null;
  const service = isPlace ? "Road" : connectTo;
  const isWanted = (node: SimNode) => node.prefab.service === service;
  const atPlace = isPlace
    ? nearestNode(world, prefab, connectTo, MAX_CONNECTION_METERS, isWanted)
    : undefined;
  let best: Way | null = null;
  let bestMeters = connectMaxDistance;
  for (const from of ends) {
    const target = isPlace ? atPlace : nearestNode(world, prefab, placeOf(from), bestMeters, isWanted);
    const meters = target ? distance(placeOf(from), target.position) : Number.POSITIVE_INFINITY;
    if (!target || meters > bestMeters || (best && meters === bestMeters)) continue;
    best = { from, target, link: linkTo(prefab, from, target) };
    bestMeters = meters;
  }
  if (best) return best;
  const message = `No ${service} node to connect to lies within ${connectMaxDistance} m of the neighborhood`;
  throw new CommandRefusedError("nothing-matched", message);
}

function linkTo(prefab: SimNetworkPrefab, from: PlannedEnd, target: SimNode): PlannedLink {
  return { prefab, from, to: { point: target.position, node: target, reused: true } };
}

function planGrid(world: World, shape: GridShape, prefab: SimNetworkPrefab, grid: Grid) {
  const ends = grid.crossings.map((point) => planEnd(world, prefab, point, shape.snapDistance));
  const links = grid.streets.map(([from, to]): PlannedLink => {
    return { prefab, from: ends[from] as PlannedEnd, to: ends[to] as PlannedEnd };
  });
  return { ends, links };
}

function requireGrid(shape: GridShape, maxBlocks: number): SimNetworkPrefab {
  const prefab = requirePrefab(findNetworkPrefab, "network", shape.prefab);
  const { columns, rows, spacing, rotationDegrees, snapDistance } = shape;
  requireWholeWithin("cols", columns, 1, maxBlocks);
  requireWholeWithin("rows", rows, 1, maxBlocks);
  requireWithin("cols * rows", columns * rows, 1, maxBlocks);
  requireWithin("spacing", spacing, SPACING_METERS.least, SPACING_METERS.most);
  requireSnapDistance(snapDistance);
  if (!Number.isFinite(rotationDegrees)) {
    throw new CommandRefusedError("bad-value", `rotationDegrees must be a number, not ${rotationDegrees}`);
  }
  return prefab;
}

function requireMix(mix: BuildNeighborhood["zoneMix"]): void {
  const entries = Object.entries(mix);
  if (entries.length === 0) {
    throw new CommandRefusedError("bad-value", "zoneMix must name at least one zone with its weight");
  }
  for (const [name, weight] of entries) {
    requireZone(name);
    if (!(weight > 0 && Number.isFinite(weight))) {
      throw new CommandRefusedError("bad-value", `zoneMix.${name} must be above 0, not ${weight}`);
    }
  }
}
