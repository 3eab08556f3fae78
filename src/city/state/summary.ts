/** Overview endpoints: summary, demand, messages, tax rates, saves. */
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { gameTimeMs } from "../simulation/state/calendar.js";
import { LEVELS, levelName, SERVICES, SLIDER_SUB_SERVICES, SUB_SERVICES, TAX_CLASSES } from "../terms.js";
import { NO_LIMIT, paginate, SHORT_LIMIT, timestamp } from "./listing.js";

export const summary: ReadRoute = {
  path: "/state/summary",
  label: "Read city summary",
  read: ({ city }) => {
    const { gameTimeMs, ...simulation } = city.clock;
    return {
      ok: true,
      gameTime: timestamp(gameTimeMs),
      buildIndex: city.buildIndex,
      simulation,
      network: { nodes: city.nodes().length, segments: city.segments().length, lanes: city.laneCount },
      citizens: { count: city.citizenCount },
      demand: { ...city.demand },
    };
  },
};

export const demand: ReadRoute = {
  path: "/state/demand",
  label: "Read zone demand",
  read: ({ city }) => {
    const { residential, commercial, workplace } = city.demand;
    return {
      ok: true,
      ...city.demand,
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
  read: ({ city, query }) => {
    const oldestFirst = city.messages().map((message, index) => ({ index, ...message }));
    const { page, rows } = paginate(oldestFirst.reverse(), query, SHORT_LIMIT);
    return { ok: true, ...page, chirps: rows };
  },
};

/**
 * GET /state/economy: the tax rates. Each slider shows the rate of level 1 of its sub-service; the table
 * shows the rates of all levels.
 */
export const economy: ReadRoute = {
  path: "/state/economy",
  label: "Read economy state",
  read: ({ city }) => ({
    ok: true,
    aggregateTaxRates: SLIDER_SUB_SERVICES.map((slider) => ({
      ...names(slider),
      level: levelName(0),
      levelValue: -1,
      source: "uiTaxSlider",
      rate: city.taxRate(slider.subService, 1),
    })),
    taxRates: TAX_CLASSES.flatMap((taxed) =>
      LEVELS.map((level) => ({
        ...names(taxed),
        level: levelName(level),
        levelValue: level - 1,
        rate: city.taxRate(taxed.subService, level),
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
  read: async ({ city }) => {
    const { frame, hash } = await city.hash();
    return { ok: true, seed: city.world.seed, frame, gameTime: timestamp(gameTimeMs(frame)), hash };
  },
};

/** GET /state/saves: complete saves, newest first. */
export const saves: ReadRoute = {
  path: "/state/saves",
  label: "List saves",
  parameters: LIST_PARAMETERS,
  read: async ({ game, query }) => {
    const { directory, saves: files } = await game.listSaves();
    const { page, rows } = paginate(files, query, NO_LIMIT);
    const saves = rows.map(({ name, path, lastWriteTimeMs, lengthBytes }) => ({
      name,
      path,
      lastWriteTimeUtc: timestamp(lastWriteTimeMs),
      length: lengthBytes,
    }));
    return { ok: true, ...page, directory, saves };
  },
};
