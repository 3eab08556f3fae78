/** Endpoints for planning: budget, statistics, utilities, details of one building or segment. */

import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import { lengthOf } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { isAbandoned } from "../simulation/fabric/buildings.js";
import { crossedSegments } from "../simulation/fabric/network.js";
import { detailsOf } from "../simulation/life/census.js";
import { budgetOf } from "../simulation/life/finance.js";
import { trafficOf } from "../simulation/life/traffic.js";
import type { NetSegment, UtilityNetwork } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { facilityRow } from "./buildings.js";
import { ENTITY_LIMIT, type LimitRule, paginate, problemNames, timestamp } from "./listing.js";
import { segmentRow } from "./networks.js";

/** GET /state/budget: income and expenses by line. The history begins with the oldest week; `history=false` leaves it out. */
export const budget: ReadRoute = {
  path: "/state/budget",
  label: "Read budget",
  parameters: { history: z.boolean().default(true) },
  read: ({ world, query }) => {
    const { history, ...budget } = budgetOf(world);
    return { ...budget, history: (query.flag("history", true) ? history : []).map(weekRow) };
  },
};

function weekRow<T extends { readonly gameTimeMs: number }>({ gameTimeMs, ...figures }: T) {
  return { gameTime: timestamp(gameTimeMs), ...figures };
}

/** Weeks of statistics in a response; the default is one year. */
const STATISTICS_LIMIT: LimitRule = { fallback: 52, max: 522 };

/** GET /state/statistics: one row per week, newest first. */
export const statistics: ReadRoute = {
  path: "/state/statistics",
  label: "Read statistics",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const { page, rows } = paginate(world.statistics.samples.toReversed(), query, STATISTICS_LIMIT);
    return { ...page, samples: rows.map(weekRow) };
  },
};

/** GET /state/utilities: supply and demand of each connected network, and totals per utility. */
export const utilities: ReadRoute = {
  path: "/state/utilities",
  label: "Read utilities",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const { utilities: networks } = world;
    const { page, rows } = paginate(networks, query, ENTITY_LIMIT);
    const totals = Object.fromEntries(
      (["power", "water", "sewage", "heat"] as const).map((carries) => [carries, total(networks, carries)]),
    );
    return { ...page, totals, networks: rows };
  },
};

function total(networks: readonly UtilityNetwork[], carries: UtilityNetwork["carries"]) {
  const sum = (figure: "supply" | "demand" | "consumers" | "unserved") =>
    networks.reduce((all, network) => all + (network.carries === carries ? network[figure] : 0), 0);
  const [supply, demand] = [sum("supply"), sum("demand")];
  return { supply, demand, consumers: sum("consumers"), unserved: sum("unserved") };
}

/** GET /state/buildings/{id}: all details of a building. */
export const buildingDetails: ReadRoute = {
  path: "/state/buildings/:id",
  label: "Read building",
  read: ({ world, id }) => {
    const building = world.buildings.get(id);
    if (!building) throw new HttpError(404, `No building has id ${id}`);
    return {
      ...facilityRow(building),
      abandoned: isAbandoned(building),
      problemNames: problemNames(building.problems),
      ...detailsOf(world, building),
    };
  },
};

/** GET /state/segments/{id}: all details of a segment and its neighbours. */
export const segmentDetails: ReadRoute = {
  path: "/state/segments/:id",
  label: "Read segment",
  read: ({ world, id }) => {
    const segment = world.segments.get(id);
    if (!segment) throw new HttpError(404, `No segment has id ${id}`);
    const { prefab, problems, start, end, startNodeId, endNodeId } = segment;
    return {
      ...segmentRow(segment),
      problemNames: problemNames(problems),
      lengthMeters: lengthOf({ start, end }),
      widthMeters: prefab.widthMeters,
      lanes: prefab.lanes,
      elevation: prefab.elevation,
      zoning: prefab.zoning,
      traffic: trafficOf(segment) ?? {},
      startJoins: joinedAt(world, startNodeId, segment),
      endJoins: joinedAt(world, endNodeId, segment),
      crossesWithoutNode: crossedSegments(world, prefab, segment).map((other) => other.id),
      zoneBlockIds: world.blocks
        .all()
        .filter(({ segmentId }) => segmentId === id)
        .map((block) => block.id),
    };
  },
};

/** Ids of the segments at a node, without the given segment. */
function joinedAt(world: World, nodeId: number, { id }: NetSegment): number[] {
  return (world.nodes.get(nodeId)?.segmentIds ?? []).filter((other) => other !== id);
}

export const PLANNING_READS = [budget, statistics, utilities];
