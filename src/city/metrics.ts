/** What the city tells those who watch it, in Prometheus' text format. */
import type { RequestHandler } from "express";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { City, Game } from "./game.js";

/** What is told of a loaded city, by the names of its gauges. */
const MEASURES: Readonly<Record<string, readonly [help: string, value: (city: City) => number]>> = {
  carillon_city_time_seconds: [
    "The clock of the city, since 1970: its rate is how fast the city ticks",
    ({ clock }) => clock.gameTimeMs / 1000,
  ],
  carillon_city_citizens: ["Citizens", ({ citizenCount }) => citizenCount],
  carillon_city_buildings: ["Buildings", (city) => city.buildings().length],
  carillon_city_segments: ["Segments of roads, pipes and lines", (city) => city.segments().length],
};

/** GET /metrics: needs no city and leaves no line. The process is measured from the first time that somebody asks. */
export function showMetrics(game: Game): RequestHandler {
  let registry: Registry | undefined;
  return async (_request, response) => {
    registry ??= metricsOf(game);
    response.set("Content-Type", registry.contentType).send(await registry.metrics());
  };
}

function metricsOf(game: Game): Registry {
  const registry = new Registry();
  for (const [name, [help, value]] of Object.entries(MEASURES)) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        if (game.city === null) this.remove();
        else this.set(value(game.city));
      },
    });
  }
  collectDefaultMetrics({ register: registry });
  return registry;
}
