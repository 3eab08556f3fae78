/** Metrics of the city in Prometheus text format. */
import type { RequestHandler } from "express";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { EmbeddedGame } from "./simulation/embedded-game.js";
import type { World } from "./simulation/state/world.js";

/** Gauges of a loaded city, by metric name. */
const MEASURES: Readonly<Record<string, readonly [help: string, value: (world: World) => number]>> = {
  carillon_city_time_seconds: [
    "Game time of the city in seconds since 1970; its rate is the speed of the simulation",
    ({ clock }) => clock.gameTimeMs / 1000,
  ],
  carillon_city_citizens: ["Citizens", ({ citizens }) => citizens.size],
  carillon_city_buildings: ["Buildings", ({ buildings }) => buildings.size],
  carillon_city_segments: ["Segments of roads, pipes and lines", ({ segments }) => segments.size],
};

/** GET /metrics: works without a city. Process metrics are collected from the first request on. */
export function showMetrics(game: EmbeddedGame): RequestHandler {
  let registry: Registry | undefined;
  return async (_request, response) => {
    registry ??= metricsOf(game);
    response.set("Content-Type", registry.contentType).send(await registry.metrics());
  };
}

function metricsOf(game: EmbeddedGame): Registry {
  const registry = new Registry();
  for (const [name, [help, value]] of Object.entries(MEASURES)) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        if (game.world === null) this.remove();
        else this.set(value(game.world));
      },
    });
  }
  collectDefaultMetrics({ register: registry });
  return registry;
}
