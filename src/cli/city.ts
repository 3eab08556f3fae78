/** `carillon city`: serves only the city. */
import { Command, Option } from "commander";
import { loadConfig } from "../config.js";
import { createLogger } from "../system/log.js";
import { serveUntilStopped } from "../system/service-process.js";
import { environmentWith } from "./command.js";

export const cityCommand = new Command("city")
  .description("serve only the city until stopped")
  .option("--load <file>", "load this save instead of the latest")
  .option("--port <port>", "same as CITY_BRIDGE_PORT")
  .addOption(new Option("--for-parent", "run as the child process of `carillon serve`").hideHelp())
  .action(serveCity);

async function serveCity(options: { load?: string; port?: string; forParent?: boolean }): Promise<void> {
  const { load, port, forParent } = options;
  const config = loadConfig(environmentWith({ CITY_BRIDGE_PORT: port }));
  process.umask(config.umask);
  const log = createLogger(config.logLevel);
  const { startCity } = await import("../city/index.js");
  const { serveParent } = await import("../city/process.js");
  if (forParent) return serveParent(() => startCity(config, log), log);
  await serveUntilStopped(log, async (add) => {
    const city = await startCity(config, log, { load });
    add(city);
    console.log(`city on ${city.url}`);
  });
}
