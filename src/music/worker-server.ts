/** What a worker of a fleet serves over HTTP: whether it lives, and its metrics. Clients ask a gateway. */
import express from "express";
import { CONNECTION_TIMEOUTS, connectionLimits, limitConnections } from "../http/connections.js";
import { listen, logRequests } from "../http/listener.js";
import { Authenticator, checkHost, requireProtection } from "./access.js";
import { detailFor, errorHandler, notFound } from "./errors.js";
import { health, metrics } from "./routes/model-endpoints.js";
import { explainAddress, type MusicServer, type MusicServerOptions } from "./server.js";
import { Telemetry } from "./telemetry.js";

/** Listens, loads the models, and takes tasks from then on. */
export async function startWorkerServer(
  options: MusicServerOptions,
): Promise<Pick<MusicServer, "url" | "close">> {
  const { config, queue, jobs, log } = options;
  requireProtection(config);
  const { engine } = jobs;
  if (engine === null) throw new Error("a worker needs an engine");
  const telemetry = new Telemetry({ queue, engine }, log);
  const authenticator = new Authenticator(config.apiKey, config.apiKeys);
  const app = express().disable("x-powered-by");
  app.use(logRequests(log, (line) => log.debug(line, "request")));
  if (config.isLocal) app.use(checkHost(config.allowedHosts));
  const context = { config, authenticator, service: { engine, telemetry } };
  app.get("/health", health(context));
  app.get("/metrics", metrics(context));
  app.use(notFound);
  app.use(errorHandler((message, err) => log.error({ err }, message), detailFor(config)));

  const address = { port: config.apiPort, host: config.apiHost };
  const listener = await listen(address, CONNECTION_TIMEOUTS, log, (server) =>
    limitConnections(server, connectionLimits()),
  ).catch((error) => explainAddress(error, config));
  listener.server.on("request", app);
  try {
    await jobs.prepare();
    await queue.open(() => {});
    queue.start();
  } catch (error) {
    await listener.close(Promise.resolve());
    throw error;
  }
  return {
    url: listener.url,
    close: async (graceSeconds = config.graceSeconds) => {
      const stopped = queue.stop(graceSeconds);
      await Promise.all([listener.close(stopped), stopped]);
    },
  };
}
