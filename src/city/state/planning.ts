/** Endpoints for planning: budget, statistics, utilities, details of one building or segment. */
import { z } from "zod";
import { HttpError } from "../../http/http-error.js";
import type { BudgetWeek, NetSegment, StatisticsSample, UtilityNetwork } from "../game.js";
import { lengthOf } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import type { SimulatedCity } from "../simulation/simulated-city.js";
import { FLAG } from "../terms.js";
import { facilityRow } from "./buildings.js";
import { ENTITY_LIMIT, type LimitRule, paginate, problemNames, timestamp } from "./listing.js";
import { segmentRow } from "./networks.js";

/** GET /state/budget: income and expenses by line. The history begins with the oldest week; `history=false` leaves it out. */
export const budget: ReadRoute = {
  path: "/state/budget",
  label: "Read budget",
  parameters: { history: z.boolean().default(true) },
  read: ({ city, query }) => {
    const { unlimited, balance, income, expenses, loans, loanOffers, history } = city.budget;
    return {
      ok: true,
      unlimited,
      balance,
      income: income.map((line) => ({ ...line })),
      expenses: expenses.map((line) => ({ ...line })),
      loans: loans.map((loan) => ({ ...loan })),
      loanOffers: loanOffers.map((offer) => ({ ...offer })),
      history: (query.flag("history", true) ? history : []).map(weekRow),
    };
  },
};

function weekRow<T extends BudgetWeek | StatisticsSample>({ gameTimeMs, ...figures }: T) {
  return { gameTime: timestamp(gameTimeMs), ...figures };
}

/** Weeks of statistics in a response; the default is one year. */
const STATISTICS_LIMIT: LimitRule = { fallback: 52, max: 522 };

/** GET /state/statistics: one row per week, newest first. */
export const statistics: ReadRoute = {
  path: "/state/statistics",
  label: "Read statistics",
  parameters: LIST_PARAMETERS,
  read: ({ city, query }) => {
    const { page, rows } = paginate(city.statistics().toReversed(), query, STATISTICS_LIMIT);
    return { ok: true, ...page, samples: rows.map(weekRow) };
  },
};

/** GET /state/utilities: supply and demand of each connected network, and totals per utility. */
export const utilities: ReadRoute = {
  path: "/state/utilities",
  label: "Read utilities",
  parameters: LIST_PARAMETERS,
  read: ({ city, query }) => {
    const networks = city.utilities();
    const { page, rows } = paginate(networks, query, ENTITY_LIMIT);
    const totals = Object.fromEntries(
      (["power", "water", "sewage", "heat"] as const).map((carries) => [carries, total(networks, carries)]),
    );
    return { ok: true, ...page, totals, networks: rows.map((network) => ({ ...network })) };
  },
};

function total(networks: readonly UtilityNetwork[], carries: UtilityNetwork["carries"]) {
  const sum = (figure: "supply" | "demand" | "consumers" | "unserved") =>
    networks.reduce((all, network) => all + (network.carries === carries ? network[figure] : 0), 0);
  return {
    supply: sum("supply"),
    demand: sum("demand"),
    consumers: sum("consumers"),
    unserved: sum("unserved"),
  };
}

/** GET /state/buildings/{id}: all details of a building. */
export const buildingDetails: ReadRoute = {
  path: "/state/buildings/:id",
  label: "Read building",
  read: ({ city, id }) => {
    const building = city.building(id);
    const details = city.buildingDetails(id);
    if (!building || !details) throw new HttpError(404, `No building has id ${id}`);
    return {
      ok: true,
      ...facilityRow(building),
      abandoned: (building.flags & FLAG.Abandoned) !== 0,
      problemNames: problemNames(building.problems),
      ...details,
    };
  },
};

/** GET /state/segments/{id}: all details of a segment and its neighbours. */
export const segmentDetails: ReadRoute = {
  path: "/state/segments/:id",
  label: "Read segment",
  read: ({ city, id }) => {
    const segment = city.segment(id);
    if (!segment) throw new HttpError(404, `No segment has id ${id}`);
    const { prefab, problems, start, end, startNodeId, endNodeId } = segment;
    return {
      ok: true,
      ...segmentRow(segment),
      problemNames: problemNames(problems),
      lengthMeters: lengthOf({ start, end }),
      widthMeters: prefab.widthMeters,
      lanes: prefab.lanes,
      elevation: prefab.elevation,
      zoning: prefab.zoning,
      traffic: { ...city.traffic(id) },
      startJoins: joinedAt(city, startNodeId, segment),
      endJoins: joinedAt(city, endNodeId, segment),
      crossesWithoutNode: city.crossings(id),
      zoneBlockIds: city
        .zoneBlocks()
        .filter(({ segmentId }) => segmentId === id)
        .map((block) => block.id),
    };
  },
};

/** Ids of the segments at a node, without the given segment. */
function joinedAt(city: SimulatedCity, nodeId: number, { id }: NetSegment): number[] {
  return (city.node(nodeId)?.segmentIds ?? []).filter((other) => other !== id);
}
