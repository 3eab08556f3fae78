import type { City } from "../game.js";
import type { ReadRoute } from "../route.js";
import { timestamp } from "./listing.js";

/** GET /state/summary */
export const summary: ReadRoute = {
  path: "/state/summary",
  label: "Read city summary",
  read: ({ city }) => ({
    ok: true,
    gameTime: timestamp(city.clock.gameTimeMs),
    buildIndex: city.buildIndex,
    simulation: speedOf(city),
    network: { nodes: city.nodes().length, segments: city.segments().length, lanes: city.laneCount },
    citizens: { count: city.citizenCount },
    demand: demandOf(city),
  }),
};

/** GET /state/demand */
export const demand: ReadRoute = {
  path: "/state/demand",
  label: "Read zone demand",
  read: ({ city }) => {
    const { residential, commercial, workplace } = city.demand;
    return {
      ok: true,
      ...demandOf(city),
      bars: [
        { type: "Residential", key: "residential", value: residential, max: 100, color: "#7fff00" },
        { type: "Commercial", key: "commercial", value: commercial, max: 100, color: "#30c8ff" },
        { type: "Workplace", key: "workplace", value: workplace, max: 100, color: "#ffd21a" },
      ],
    };
  },
};

function demandOf(city: City) {
  const { residential, commercial, workplace } = city.demand;
  return { residential, commercial, workplace };
}

function speedOf(city: City) {
  const { paused, selectedSpeed, finalSpeed } = city.clock;
  return { paused, selectedSpeed, finalSpeed };
}
