/**
 * Plans a straight road as the game lays it: in segments of at most 96 m, with a node where it crosses another road.
 * Zone blocks reach 64 m from each end of a segment, so that both sides of such a road can be zoned.
 */
import {
  boxAround,
  CELL_METERS,
  cosineBetween,
  distance,
  type GroundPoint,
  intersectionOf,
  type Line,
  pointAlong,
  SAME_HEIGHT_METERS,
  squareAround,
} from "../geometry.js";
import { RefusedError } from "../refusal.js";
import type { NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { splitSegment } from "../simulation/fabric/network.js";
import type { NetNode, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import {
  buildPlan,
  isJoined,
  type NetworkPlan,
  nearestNode,
  type PlannedLink,
  planNetwork,
  pointOfEnd,
  type SegmentEnd,
  warningsOf,
} from "./network-plan.js";

const MAX_PIECE_METERS = 96;
/** A road that is crossed this close to its end is joined at that end. Stops on a road are at least this far apart. */
const STOP_METERS = 8;

/** An end farther from a road than this was meant to be beside it. */
const MAX_REACH_METERS = 16;

/** Roads at a smaller angle than about 10 degrees are parallel. */
const PARALLEL_COSINE = 0.985;

/** A node this close to a road lies on it. */
const NODE_METERS = 2;

/** Place on a planned road at which a segment ends. */
interface Stop {
  readonly end: SegmentEnd;
  /** Road that is crossed there, and has to get a node. */
  readonly crossed?: NetSegment;
}

export interface SplitPlan extends NetworkPlan {
  readonly stops: readonly Stop[];
}

/**
 * @param snap maximum distance from an end to the road on which it is laid; null: STOP_METERS
 * @throws RefusedError if the road breaks a limit or costs more than the balance
 */
export function planSplitRoad(
  world: World,
  prefab: NetworkPrefab,
  [start, end]: readonly [SegmentEnd, SegmentEnd],
  snap: number | null,
  what: string,
): SplitPlan {
  const reach = Math.min(snap ?? STOP_METERS, MAX_REACH_METERS);
  const first = onRoad(world, prefab, start, reach);
  const isOther = ({ id }: NetSegment) =>
    id !== first.crossed?.id && !first.end.node?.segmentIds.includes(id);
  const last = onRoad(world, prefab, end, reach, isOther);
  const [from, to] = [first.end, last.end];
  const inner = [...nodesOn(world, prefab, from, to), ...crossingsOf(world, prefab, from, to)];
  const stops = withPieces([first, ...farApart(inner, from, to), last]);
  const ends = stops.map(({ end }) => end);
  const links = ends.slice(1).map((end, i) => ({ prefab, from: ends[i] as SegmentEnd, to: end }));
  requireNewGround(world, links);
  const divided = stops.filter(({ crossed }) => crossed).length;
  world.segments.requireRoomFor(links.length + divided);
  return { ...planNetwork(world, ends, links, what), stops };
}

/** Builds a road, and divides the roads that it crosses. With `dryRun`, returns only what it would build. */
export function buildInPieces(world: World, plan: SplitPlan, dryRun: boolean, name: string) {
  const { ends, links, skippedSegments, cost, stops } = plan;
  const warnings = [...warningsOf(world, links), ...lonelinessOf(world, plan)];
  const plannedNodes = ends.filter(({ reused }) => !reused).length;
  const planned = dryRun ? { plannedSegments: links.length, plannedNodes } : undefined;
  const segmentIds = dryRun ? [] : buildPlan(world, plan, name);
  for (const { end, crossed } of dryRun ? [] : stops) {
    if (crossed) splitSegment(world, crossed, end.node as NetNode);
  }
  const nodeIds = ends.map(({ node }) => node?.id ?? 0);
  const built = { segmentId: segmentIds[0], startNodeId: nodeIds[0], endNodeId: nodeIds.at(-1) };
  const ids = dryRun ? undefined : { ...built, segmentIds, nodeIds };
  const isOne = links.length === 1;
  const message = dryRun
    ? `${isOne ? "The segment" : `${links.length} segments`} can be built.`
    : `Built ${isOne ? `segment ${segmentIds[0]}` : `${links.length} segments`}.`;
  return { message, ...planned, ...ids, skippedSegments, cost, warnings };
}

/** A warning if nobody can drive to the road, because nothing joins it to the others. */
function lonelinessOf(world: World, { stops, links: [link] }: SplitPlan): string[] {
  const isJoined = stops.some(({ end, crossed }) => end.reused || crossed);
  const hasTraffic = ({ prefab }: { readonly prefab: NetworkPrefab }) => prefab.carries === "traffic";
  if (isJoined || !link || !hasTraffic(link) || !world.segments.all().some(hasTraffic)) return [];
  return ["The new road is not joined to any other road"];
}

/** An end that lies on a road of the same kind, as the pointer hardly meets its axis, or a node at the end of that road. */
function onRoad(
  world: World,
  prefab: NetworkPrefab,
  end: SegmentEnd,
  reach: number,
  isWanted: (road: NetSegment) => boolean = () => true,
): Stop {
  if (end.node || prefab.elevation !== "ground" || prefab.carries === "other") return { end };
  let nearest:
    | { readonly road: NetSegment; readonly point: GroundPoint; readonly meters: number }
    | undefined;
  for (const road of world.segments.near(squareAround(end.point, reach))) {
    const isAlike = road.prefab.carries === prefab.carries && road.prefab.elevation === "ground";
    const point = nearestOn(road, end.point);
    const meters = distance(point, end.point);
    if (!isAlike || !isWanted(road) || meters > reach || meters >= (nearest?.meters ?? Infinity)) continue;
    nearest = { road, point, meters };
  }
  return nearest ? stopOn(world, nearest.road, nearest.point) : { end };
}

/** @throws RefusedError if a piece lies on a road of its kind, or all do; pieces that exist between two nodes are skipped */
function requireNewGround(world: World, links: readonly PlannedLink[]): void {
  const added = links.filter((link) => !isJoined(world, link));
  for (const link of added.length > 0 ? added : links) {
    const road = roadAlong(world, link);
    if (road) throw new RefusedError(`A ${road.prefab.displayName}, segment ${road.id}, lies there already`);
  }
}

function roadAlong(world: World, { prefab, from, to }: PlannedLink): NetSegment | undefined {
  const line = { start: pointOfEnd(from), end: pointOfEnd(to) };
  const center = { x: (line.start.x + line.end.x) / 2, z: (line.start.z + line.end.z) / 2 };
  return world.segments.near(squareAround(center, STOP_METERS)).find((road) => {
    const isAlike = road.prefab.carries === prefab.carries && road.prefab.elevation === prefab.elevation;
    const isParallel = Math.abs(cosineBetween(road, line)) >= PARALLEL_COSINE;
    return isAlike && isParallel && distance(nearestOn(road, center), center) < STOP_METERS;
  });
}

/** The node of a road near a point, or a new one there. */
function stopOn(world: World, road: NetSegment, point: GroundPoint): Stop {
  const node = [road.startNodeId, road.endNodeId]
    .map((id) => world.nodes.at(id))
    .find(({ position }) => distance(position, point) < STOP_METERS);
  if (node) return { end: { point: node.position, node, reused: true } };
  return { end: { point, node: undefined, reused: false }, crossed: road };
}

/** Nodes on the road at which it can be joined to others. */
function* nodesOn(world: World, prefab: NetworkPrefab, from: SegmentEnd, to: SegmentEnd): Generator<Stop> {
  const line = { start: pointOfEnd(from), end: pointOfEnd(to) };
  for (const { position } of world.nodes.near(boxAround(line, STOP_METERS))) {
    const place = nearestOn(line, position);
    const node = nearestNode(world, prefab, place, NODE_METERS);
    if (node) yield { end: { point: node.position, node, reused: true } };
  }
}

/** Crossings with other networks of the same kind on the ground. */
function* crossingsOf(
  world: World,
  prefab: NetworkPrefab,
  from: SegmentEnd,
  to: SegmentEnd,
): Generator<Stop> {
  const heightAt = ({ x, z }: GroundPoint) => ({ x, y: world.terrain.surfaceHeight(x, z), z });
  const line = { start: heightAt(pointOfEnd(from)), end: heightAt(pointOfEnd(to)) };
  if (prefab.elevation !== "ground" || prefab.carries === "other") return;
  for (const other of world.segments.near(boxAround(line, 0))) {
    if (other.prefab.carries !== prefab.carries || other.prefab.elevation !== "ground") continue;
    const meeting = intersectionOf(line, other);
    if (!meeting || !isWithin(meeting.alongA) || !isWithin(meeting.alongB)) continue;
    const [point, there] = [pointAlong(line, meeting.alongA), pointAlong(other, meeting.alongB)];
    if (Math.abs(point.y - there.y) > SAME_HEIGHT_METERS) continue;
    yield stopOn(world, other, point);
  }
}

function isWithin(along: number): boolean {
  return along >= 0 && along <= 1;
}

function nearestOn({ start, end }: Line, { x, z }: GroundPoint): GroundPoint {
  const [dx, dz] = [end.x - start.x, end.z - start.z];
  const along = ((x - start.x) * dx + (z - start.z) * dz) / (dx * dx + dz * dz);
  const share = Math.min(Math.max(along, 0), 1);
  return { x: start.x + share * dx, z: start.z + share * dz };
}

/** Stops in the road's direction, without those too close to the one before or to an end. */
function farApart(stops: readonly Stop[], from: SegmentEnd, to: SegmentEnd): Stop[] {
  const metersTo = (a: SegmentEnd, b: SegmentEnd) => distance(pointOfEnd(a), pointOfEnd(b));
  const kept: Stop[] = [];
  let last = from;
  for (const stop of stops.toSorted((a, b) => metersTo(from, a.end) - metersTo(from, b.end))) {
    if (metersTo(last, stop.end) < STOP_METERS || metersTo(stop.end, to) < STOP_METERS) continue;
    kept.push(stop);
    last = stop.end;
  }
  return kept;
}

/** Adds stops, so that no piece is longer than MAX_PIECE_METERS. Pieces are whole cells long where possible. */
function withPieces(stops: readonly Stop[]): Stop[] {
  return stops.flatMap((stop, i) => {
    const next = stops[i + 1];
    if (!next) return [stop];
    const line = { start: pointOfEnd(stop.end), end: pointOfEnd(next.end) };
    const length = distance(line.start, line.end);
    const pieces = Math.ceil(length / MAX_PIECE_METERS);
    const added = Array.from({ length: pieces - 1 }, (_, piece) => {
      const meters = CELL_METERS * Math.ceil(((piece + 1) * length) / pieces / CELL_METERS);
      const point = {
        x: line.start.x + ((line.end.x - line.start.x) * meters) / length,
        z: line.start.z + ((line.end.z - line.start.z) * meters) / length,
      };
      return { end: { point, node: undefined, reused: false } };
    });
    return [stop, ...added];
  });
}
