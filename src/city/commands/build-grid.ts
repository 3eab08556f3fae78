import { z } from "zod";
import { fieldText, groundPoint, number } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { GRID_FIELDS, gridFromCorner, gridReply, planGrid, requireGrid } from "./grid.js";
import { buildUnlessDryRun, planNetwork } from "./network-plan.js";

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
