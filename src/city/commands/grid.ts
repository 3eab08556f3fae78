/** Street grids around square blocks: fields, geometry, checks, plan and command. */
import { z } from "zod";
import { type Box, boundsOf, type GroundPoint } from "../geometry.js";
import { findNetworkPrefab, type NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import type { World } from "../simulation/state/world.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import {
  buildUnlessDryRun,
  type PlannedLink,
  planNetwork,
  planSegmentEnd,
  type SegmentEnd,
} from "./network-plan.js";
import { requirePrefab, requireSnapDistance, requireWholeWithin, requireWithin } from "./requirements.js";

/** Default distance between crossings, and default search radius for nodes. `GET /health` reports both. */
export const DEFAULT_SPACING_METERS = 80;
export const DEFAULT_SNAP_METERS = 8;
const SPACING_METERS = { least: 32, most: 256 };

export const GRID_FIELDS = {
  dryRun: flag(false),
  name: text("").describe("Name of every segment; empty for generated names."),
  roadPrefab: text("Basic Road"),
  spacing: number(DEFAULT_SPACING_METERS).describe("Metres between crossings, 32 to 256."),
  rotationDegrees: number(0).describe("Clockwise seen from above."),
  snapDistance: number(DEFAULT_SNAP_METERS).describe(
    "A crossing uses an existing compatible node within this distance, 0 to 64 m.",
  ),
};

type GridShape = z.output<z.ZodObject<typeof GRID_FIELDS>> & { cols: number; rows: number };

export interface Grid {
  /** Crossings of the streets: (cols + 1) x (rows + 1) points, row by row. */
  readonly crossings: readonly GroundPoint[];
  /** Streets as pairs of indices into `crossings`: first all rows, then all columns. */
  readonly streets: readonly (readonly [number, number])[];
  /** Centres of the blocks: cols x rows points, row by row. */
  readonly blockCenters: readonly GroundPoint[];
  readonly bounds: Box;
}

function gridFromCorner(origin: GroundPoint, shape: GridShape): Grid {
  const { cols, rows, spacing } = shape;
  const across = cols + 1;
  const placed = (column: number, row: number) => {
    const turned = turn({ x: column * spacing, z: row * spacing }, shape.rotationDegrees);
    return { x: origin.x + turned.x, z: origin.z + turned.z };
  };
  const crossings = gridCells(across, rows + 1).map(([column, row]) => placed(column, row));
  const alongRows = gridCells(cols, rows + 1).map(([column, row]) => {
    return [row * across + column, row * across + column + 1] as const;
  });
  const alongColumns = gridCells(across, rows).map(([column, row]) => {
    return [row * across + column, (row + 1) * across + column] as const;
  });
  return {
    crossings,
    streets: [...alongRows, ...alongColumns],
    blockCenters: gridCells(cols, rows).map(([column, row]) => placed(column + 0.5, row + 0.5)),
    bounds: boundsOf(crossings),
  };
}

/** Grid centred on a place. */
export function gridAround(center: GroundPoint, shape: GridShape): Grid {
  const half = turn(
    { x: (shape.cols * shape.spacing) / 2, z: (shape.rows * shape.spacing) / 2 },
    shape.rotationDegrees,
  );
  return gridFromCorner({ x: center.x - half.x, z: center.z - half.z }, shape);
}

function turn({ x, z }: GroundPoint, degrees: number): GroundPoint {
  const angle = (degrees * Math.PI) / 180;
  return { x: x * Math.cos(angle) + z * Math.sin(angle), z: -x * Math.sin(angle) + z * Math.cos(angle) };
}

/** Column and row of each cell, row by row. */
export function gridCells(cols: number, rows: number): [number, number][] {
  return Array.from({ length: cols * rows }, (_, i) => [i % cols, Math.floor(i / cols)]);
}

/** @throws RefusedError */
export function requireGrid(shape: GridShape, maxBlocks: number): NetworkPrefab {
  const prefab = requirePrefab(findNetworkPrefab, "network", shape.roadPrefab);
  const { cols, rows, spacing, snapDistance } = shape;
  requireWholeWithin("cols", cols, 1, maxBlocks);
  requireWholeWithin("rows", rows, 1, maxBlocks);
  requireWithin("cols * rows", cols * rows, 1, maxBlocks);
  requireWithin("spacing", spacing, SPACING_METERS.least, SPACING_METERS.most);
  requireSnapDistance(snapDistance);
  return prefab;
}

export function planGrid(world: World, { snapDistance }: GridShape, prefab: NetworkPrefab, grid: Grid) {
  const ends = grid.crossings.map((point) => planSegmentEnd(world, prefab, point, snapDistance));
  const links = grid.streets.map(([from, to]): PlannedLink => {
    return { prefab, from: ends[from] as SegmentEnd, to: ends[to] as SegmentEnd };
  });
  return { ends, links };
}

/** Reply to a command that builds a grid. */
export function gridReply(
  { roadPrefab, cols, rows, spacing }: GridShape,
  { bounds, blockCenters }: Grid,
  { message, details }: ReturnType<typeof buildUnlessDryRun>,
) {
  return { message, roadPrefab, cols, rows, spacing, ...details, bbox: bounds, blockCenters };
}

const MAX_BLOCKS = 400;

export const buildGrid = defineCommand({
  path: "/commands/build-grid",
  summary: "Builds a grid of streets around square blocks, all of it or nothing.",
  label: ({ cols, rows }) => `Build grid ${fieldText(cols, "4")} x ${fieldText(rows, "4")}`,
  fields: z.object({
    ...GRID_FIELDS,
    origin: groundPoint.describe("Position of the first crossing."),
    cols: number(4),
    rows: number(4),
  }),
  act: (world, fields) => {
    const prefab = requireGrid(fields, MAX_BLOCKS);
    const grid = gridFromCorner(fields.origin, fields);
    const { ends, links } = planGrid(world, fields, prefab, grid);
    const plan = planNetwork(world, ends, links, "The grid");
    return gridReply(fields, grid, buildUnlessDryRun(world, plan, fields));
  },
});
