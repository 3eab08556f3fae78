/** Overview endpoints: summary, demand, messages, tax rates, saves. */

import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { shownDemand } from "../simulation/life/demand.js";
import { hashOf } from "../simulation/saves/save-files.js";
import { gameTimeMs } from "../simulation/state/calendar.js";
import { LEVELS, levelName, SERVICES, SLIDER_SUB_SERVICES, SUB_SERVICES, TAX_CLASSES } from "../terms.js";
import { NO_LIMIT, paginate, SHORT_LIMIT, timestamp } from "./listing.js";

export const summary: ReadRoute = {
  path: "/state/summary",
  label: "Read city summary",
  read: ({ world }) => {
    const { gameTimeMs, ...simulation } = world.clock;
    const segments = world.segments.all();
    const lanes = segments.reduce((sum, { prefab }) => sum + prefab.lanes, 0);
    return {
      gameTime: timestamp(gameTimeMs),
      buildIndex: world.buildIndex,
      simulation,
      network: { nodes: world.nodes.size, segments: segments.length, lanes },
      citizens: { count: world.citizens.size },
      demand: shownDemand(world),
    };
  },
};

export const demand: ReadRoute = {
  path: "/state/demand",
  label: "Read zone demand",
  read: ({ world }) => {
    const demand = shownDemand(world);
    const { residential, commercial, workplace } = demand;
    return {
      ...demand,
      bars: [
        { type: "Residential", key: "residential", value: residential, max: 100, color: "#7fff00" },
        { type: "Commercial", key: "commercial", value: commercial, max: 100, color: "#30c8ff" },
        { type: "Workplace", key: "workplace", value: workplace, max: 100, color: "#ffd21a" },
      ],
    };
  },
};

/** GET /state/chirps: newest first. */
export const chirps: ReadRoute = {
  path: "/state/chirps",
  label: "Read citizen chirps",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const oldestFirst = world.board.messages.map((message, index) => ({ index, ...message }));
    const { page, rows } = paginate(oldestFirst.reverse(), query, SHORT_LIMIT);
    return { ...page, chirps: rows };
  },
};

/** GET /state/economy: the tax rates. A slider shows the rate of level 1 of its sub-service. */
export const economy: ReadRoute = {
  path: "/state/economy",
  label: "Read economy state",
  read: ({ world }) => ({
    aggregateTaxRates: SLIDER_SUB_SERVICES.map((slider) => ({
      ...names(slider),
      level: levelName(0),
      levelValue: -1,
      source: "uiTaxSlider",
      rate: world.taxes.rate(slider.subService, 1),
    })),
    taxRates: TAX_CLASSES.flatMap((taxed) =>
      LEVELS.map((level) => ({
        ...names(taxed),
        level: levelName(level),
        levelValue: level - 1,
        rate: world.taxes.rate(taxed.subService, level),
      })),
    ),
  }),
};

function names({ service, subService }: (typeof TAX_CLASSES)[number]) {
  return {
    service,
    serviceValue: SERVICES.indexOf(service),
    subService,
    subServiceValue: SUB_SERVICES.indexOf(subService),
  };
}

/** GET /state/hash: the same seed and the same commands at the same frames give the same hash. */
export const hash: ReadRoute = {
  path: "/state/hash",
  label: "Read city hash",
  read: async ({ world }) => {
    const { frame, hash } = await hashOf(world);
    return { seed: world.seed, frame, gameTime: timestamp(gameTimeMs(frame)), hash };
  },
};

/** GET /state/saves: complete saves, newest first. */
export const saves: ReadRoute = {
  path: "/state/saves",
  label: "List saves",
  parameters: LIST_PARAMETERS,
  read: async ({ game, query }) => {
    const { page, rows } = paginate(await game.saves.list(), query, NO_LIMIT);
    const saves = rows.map(({ name, path, lastWriteTimeMs, lengthBytes }) => ({
      name,
      path,
      lastWriteTimeUtc: timestamp(lastWriteTimeMs),
      length: lengthBytes,
    }));
    return { ...page, directory: game.saves.directory, saves };
  },
};

export const SUMMARY_READS = [chirps, demand, economy, hash, saves, summary];
