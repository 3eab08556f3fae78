/**
 * Commands of many parts, all or nothing. An `opId` makes a repeat harmless: the reply of what was done under it comes
 * again, and nothing is done twice.
 */
import { z } from "zod";
import { type BuiltNetwork, CLEARABLE, PLACEMENTS } from "../composites.js";
import type { City, GroundPoint } from "../game.js";
import type { CommandRoute } from "../route.js";
import type { JsonObject } from "../wire/answers.js";
import {
  type Body,
  flag,
  number,
  optionalNumber,
  parseFields,
  point,
  shown,
  text,
} from "../wire/requests.js";
import { crossingWarnings } from "./build-network.js";

/** Between crossings, and how near a node is used again, unless a command says otherwise. */
export const DEFAULT_SPACING_METERS = 80;
export const DEFAULT_SNAP_METERS = 8;

const KEPT_REPLIES = 200;
const replies = new WeakMap<City, Map<string, JsonObject>>();

/** A command that is run once per `opId`; refusals and dry runs are not remembered. */
function composite<Shape extends z.core.$ZodLooseShape>(
  path: string,
  label: (body: Body) => string,
  shape: Shape,
  act: (city: City, fields: z.output<z.ZodObject<Shape>>) => JsonObject,
): CommandRoute {
  const fields = z.object(shape);
  const run = (city: City, body: Body) => {
    const { opId, dryRun } = body;
    const isRemembered = typeof opId === "string" && opId !== "" && dryRun !== true;
    if (!isRemembered) return act(city, parseFields(fields, body));
    const known = replies.get(city) ?? new Map<string, JsonObject>();
    replies.set(city, known);
    const key = `${path} ${opId}`;
    const earlier = known.get(key);
    if (earlier) return earlier;
    const reply = act(city, parseFields(fields, body));
    known.set(key, reply);
    const [oldest] = known.keys();
    if (known.size > KEPT_REPLIES && oldest !== undefined) known.delete(oldest);
    return reply;
  };
  return { path, fields, label, run };
}

const COMMON_FIELDS = { dryRun: flag(false), name: text(""), opId: text("") };
const GRID_FIELDS = {
  ...COMMON_FIELDS,
  roadPrefab: text("Basic Road"),
  spacing: number(DEFAULT_SPACING_METERS),
  rotationDegrees: number(0),
  snapDistance: number(DEFAULT_SNAP_METERS),
};

/** What was built, or what would be: the public bridge tells counts in place of ids then. */
function builtFields(dryRun: boolean, built: BuiltNetwork): JsonObject {
  const { nodeIds, createdNodeIds, reusedNodes, segmentIds, skippedSegments, plannedNodes, plannedSegments } =
    built;
  return {
    ...(dryRun
      ? { plannedNodes, plannedSegments, reusedNodes, skippedSegments }
      : { nodeIds, createdNodeIds, reusedNodes, segmentIds, skippedSegments }),
    cost: built.cost,
    ...crossingWarnings(built.crossedSegmentIds),
  };
}

function builtMessage(dryRun: boolean, { plannedSegments, plannedNodes, cost }: BuiltNetwork): string {
  const done = dryRun ? "would be built" : "were built";
  return `${plannedSegments} segments and ${plannedNodes} nodes ${done} for ${cost.toFixed(2)}.`;
}

function onGround({ x, z }: GroundPoint) {
  return { x, z };
}

/** POST /commands/build-grid: streets around square blocks. */
export const buildGrid = composite(
  "/commands/build-grid",
  ({ cols, rows }) => `Build grid ${shown(cols, "4")} x ${shown(rows, "4")}`,
  { ...GRID_FIELDS, origin: point, cols: number(4), rows: number(4) },
  (city, { roadPrefab, cols, ...fields }) => {
    const { dryRun, rows, spacing } = fields;
    const result = city.apply({ type: "build-grid", prefab: roadPrefab, columns: cols, ...fields });
    const message = builtMessage(dryRun, result);
    const shape = { roadPrefab, cols, rows, spacing };
    const blockCenters = result.blockCenters.map(onGround);
    const bbox = { ...result.bounds };
    return { ok: true, dryRun, message, ...shape, ...builtFields(dryRun, result), bbox, blockCenters };
  },
);

/** POST /commands/connect: one segment to the nearest part of a network that the place is not joined to. */
export const connect = composite(
  "/commands/connect",
  ({ toService }) => `Connect to ${shown(toService, "Road")}`,
  {
    ...COMMON_FIELDS,
    from: point,
    toService: text("Road"),
    maxDistance: number(200),
    roadPrefab: text("Basic Road"),
    snapDistance: number(DEFAULT_SNAP_METERS),
  },
  (city, { roadPrefab, ...fields }) => {
    const { dryRun } = fields;
    const result = city.apply({ type: "connect", prefab: roadPrefab, ...fields });
    const { alreadyConnected, nodeId, targetNodeId, segmentIds, createdNodeIds, distance, cost } = result;
    return {
      ok: true,
      dryRun,
      message: alreadyConnected ? `Node ${nodeId} is connected already.` : builtMessage(dryRun, result),
      roadPrefab,
      alreadyConnected,
      nodeId,
      targetNodeId,
      targetPosition: onGround(result.targetPosition),
      segmentIds,
      createdNodeIds,
      distance,
      cost,
      ...crossingWarnings(result.crossedSegmentIds),
    };
  },
);

const place = z.object({ x: number(0), y: number(0), z: number(0) }, "must be a service or a place");

/** POST /commands/build-neighborhood: a grid, the way to the town, and zones. */
export const buildNeighborhood = composite(
  "/commands/build-neighborhood",
  () => "Build neighborhood",
  {
    ...GRID_FIELDS,
    center: point,
    radiusOrCols: number(4),
    cols: optionalNumber,
    rows: optionalNumber,
    connectTo: z.union([z.string(), place], "must be a service or a place").nullable().default(null),
    connectMaxDistance: number(400),
    zoneMix: z.record(z.string(), number(0), "must be an object of zones and their weights"),
    commercialPlacement: z.enum(PLACEMENTS, `must be ${PLACEMENTS.join(", ")}`).default("perimeter"),
    preserveOccupied: flag(true),
    zoneRadius: optionalNumber,
  },
  (city, fields) => {
    const { roadPrefab, connectTo, dryRun, spacing, preserveOccupied } = fields;
    const cols = fields.cols ?? fields.radiusOrCols;
    const rows = fields.rows ?? cols;
    const result = city.apply({
      type: "build-neighborhood",
      ...fields,
      prefab: roadPrefab,
      columns: cols,
      rows,
      connectTo: connectTo === "" ? null : connectTo,
      placement: fields.commercialPlacement,
    });
    const { connection, zoneRadius } = result;
    const blocks = result.blocks.map(({ index, column: col, row, center, zone, changedCells }) => {
      return { index, col, row, center: onGround(center), zone, ok: true, changedCells };
    });
    const changedCells = blocks.reduce((sum, block) => sum + block.changedCells, 0);
    return {
      ok: true,
      dryRun,
      message: builtMessage(dryRun, result),
      roadPrefab,
      cols,
      rows,
      spacing,
      ...builtFields(dryRun, result),
      bbox: { ...result.bounds },
      blockCenters: result.blockCenters.map(onGround),
      connection: connection && { ...connection, targetPosition: onGround(connection.targetPosition) },
      zoning: { zoneRadius, preserveOccupied, blocks, changedCells, failedBlocks: 0 },
    };
  },
);

/** POST /commands/bulldoze-area: buildings and segments within a circle, which has no size by default. */
export const bulldozeArea = composite(
  "/commands/bulldoze-area",
  () => "Bulldoze area",
  {
    dryRun: flag(false),
    opId: text(""),
    center: point,
    radius: number(0),
    entityTypes: z
      .array(z.enum(CLEARABLE, `must be ${CLEARABLE.join(" or ")}`), "must be a list")
      .default([...CLEARABLE]),
    service: text(""),
    keepNodes: flag(false),
  },
  (city, fields) => {
    const { dryRun, center, radius } = fields;
    const { buildingIds, segmentIds } = city.apply({ type: "bulldoze-area", ...fields });
    const done = dryRun ? "would be" : "were";
    const message = `${buildingIds.length} buildings and ${segmentIds.length} segments ${done} cleared.`;
    const place = { center: onGround(center), radius };
    return { ok: true, dryRun, message, ...place, buildingIds, segmentIds };
  },
);
