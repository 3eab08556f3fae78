import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { flag, groundPoint, number, optionalGroundPoint, optionalNumber } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { GRID_FIELDS, gridAround, gridCells, gridReply, planGrid, requireGrid } from "./grid.js";
import { buildUnlessDryRun, planNetwork } from "./network-plan.js";
import { requireWithin } from "./requirements.js";
import { connectGrid, connectionFields, MAX_CONNECTION_METERS } from "./roads.js";
import { MAX_PAINT_RADIUS_METERS, paintCircle, requireZone } from "./zones.js";

const MAX_BLOCKS = 144;

/** Part of the grid that gets the zones with lower weights first. The zone with the highest weight gets the rest. */
const PLACEMENTS = ["perimeter", "core", "corners"] as const;
type Placement = (typeof PLACEMENTS)[number];

/** Weight of each zone, above 0. */
type ZoneMix = Readonly<Record<string, number>>;

export const buildNeighborhood = defineCommand({
  path: "/commands/build-neighborhood",
  summary:
    "Builds a street grid, connects it to the town, and zones its blocks by weight; all of it or nothing.",
  label: () => "Build neighborhood",
  fields: z.object({
    ...GRID_FIELDS,
    center: groundPoint,
    radiusOrCols: number(4),
    cols: optionalNumber.describe("Null: the value of `radiusOrCols`."),
    rows: optionalNumber.describe("Null: the number of columns."),
    connectTo: z
      .union([z.string(), optionalGroundPoint], "must be a service or a place")
      .nullable()
      .default(null)
      .describe(
        "Connects the grid to the nearest node of this service, or to the road node nearest to this place.",
      ),
    connectMaxDistance: number(400),
    zoneMix: z.record(z.string(), number(0), "must be an object of zones and their weights"),
    commercialPlacement: z.enum(PLACEMENTS, `must be ${PLACEMENTS.join(", ")}`).default("perimeter"),
    preserveOccupied: flag(true),
    zoneRadius: optionalNumber.describe("Null: half the spacing."),
  }),
  act: (world, fields) => {
    const { dryRun, preserveOccupied, zoneMix, connectTo, connectMaxDistance } = fields;
    const cols = fields.cols ?? fields.radiusOrCols;
    const rows = fields.rows ?? cols;
    const shape = { ...fields, cols, rows };
    const prefab = requireGrid(shape, MAX_BLOCKS);
    const zoneRadius = fields.zoneRadius ?? fields.spacing / 2;
    requireWithin("zoneRadius", zoneRadius, 1, MAX_PAINT_RADIUS_METERS);
    requireMix(zoneMix);
    const grid = gridAround(fields.center, shape);
    const { ends, links } = planGrid(world, shape, prefab, grid);
    const isConnected = connectTo !== null && connectTo !== "";
    if (isConnected) requireWithin("connectMaxDistance", connectMaxDistance, 1, MAX_CONNECTION_METERS);
    const connection = isConnected ? connectGrid(world, prefab, ends, connectTo, connectMaxDistance) : null;
    const wanted = connection?.link ? [...links, connection.link] : links;
    const plan = planNetwork(world, ends, wanted, "The neighborhood");
    const built = buildUnlessDryRun(world, plan, fields);
    const zones = zonesOfBlocks(cols, rows, zoneMix, fields.commercialPlacement);
    const blocks = grid.blockCenters.map((center, index) => {
      const zone = zones[index] as string;
      const circle = { dryRun, preserveOccupied, zone, center, radius: zoneRadius };
      const { changedCells } = paintCircle(world, circle);
      const place = { index, col: index % cols, row: Math.floor(index / cols), center };
      return { ...place, zone, ok: true, changedCells };
    });
    const changedCells = blocks.reduce((sum, block) => sum + block.changedCells, 0);
    const zoning = { zoneRadius, preserveOccupied, blocks, changedCells, failedBlocks: 0 };
    const linkIds = connection?.link ? built.segmentIds.slice(-1) : [];
    return {
      ...gridReply(shape, grid, built),
      connection: connection && connectionFields(connection, linkIds),
      zoning,
    };
  },
});

/** @throws RefusedError if the mix is empty, has an unknown zone, or a weight that is not above 0 */
function requireMix(mix: ZoneMix): void {
  const entries = Object.entries(mix);
  if (entries.length === 0) throw new RefusedError("zoneMix must name at least one zone with its weight");
  for (const [name, weight] of entries) {
    requireZone(name);
    if (weight <= 0) {
      throw new RefusedError(`zoneMix.${name} must be above 0, not ${weight}`);
    }
  }
}

type Part = "corner" | "edge" | "interior";

const PLACEMENT_ORDER: Readonly<Record<Placement, readonly Part[]>> = {
  perimeter: ["edge", "corner", "interior"],
  core: ["interior", "edge", "corner"],
  corners: ["corner", "edge", "interior"],
};

/** Zone of each block, in proportion to the weights; the zone with the highest weight gets the rest. */
function zonesOfBlocks(cols: number, rows: number, zoneMix: ZoneMix, placement: Placement): string[] {
  const [background, ...lighter] = Object.entries(zoneMix).sort(([, a], [, b]) => b - a);
  const sum = Object.values(zoneMix).reduce((all, weight) => all + weight, 0);
  const zones = Array.from({ length: cols * rows }, () => background?.[0] ?? "");
  const cells = gridCells(cols, rows);
  const free = PLACEMENT_ORDER[placement].flatMap((part) =>
    [...cells.keys()].filter((i) => partOf(cells[i] as [number, number], cols, rows) === part),
  );
  for (const [zone, weight] of lighter) {
    for (const index of free.splice(0, Math.round((weight / sum) * zones.length))) zones[index] = zone;
  }
  return zones;
}

function partOf([column, row]: [number, number], cols: number, rows: number): Part {
  const ends = Number(column === 0 || column === cols - 1) + Number(row === 0 || row === rows - 1);
  return ends === 2 ? "corner" : ends === 1 ? "edge" : "interior";
}
