/** `carillon serve`, `gateway` and `worker`: the servers. */
import { Command } from "commander";
import { type Config, ignoredSettings, loadConfig } from "../config.js";
import type { MusicServer } from "../index.js";
import { ConfigError } from "../system/config-error.js";
import { createLogger, type Logger } from "../system/log.js";
import { type Service, serveUntilStopped } from "../system/service-process.js";
import { environmentWith } from "./command.js";

interface ServeOptions {
  apiKey?: string;
  city?: boolean;
  cityPort?: string;
  home?: string;
  host?: string;
  music?: boolean;
  port?: string;
}

/** @param program path of the `carillon` script, which is run again as the city's child process */
export function serveCommand(program: string): Command {
  return new Command("serve")
    .description("serve music and the city over HTTP until stopped")
    .option("--music", "serve only music")
    .option("--city", "serve only the city")
    .option("--api-key <key>", "same as SVC_API_KEY")
    .option("--host <host>", "same as SVC_API_HOST")
    .option("--port <port>", "same as SVC_API_PORT; 0: any free port")
    .option("--city-port <port>", "same as CITY_BRIDGE_PORT; 0: any free port")
    .option("--home <directory>", "same as SVC_HOME; a second server on the machine needs its own")
    .action((options: ServeOptions) => serve(program, options));
}

export function fleetCommand(program: string, role: "gateway" | "worker", purpose: string): Command {
  return new Command(role)
    .description(`serve as part of a fleet that shares tasks through SVC_REDIS_URL: ${purpose}`)
    .option("--host <host>", "same as SVC_API_HOST")
    .option("--port <port>", "same as SVC_API_PORT; 0: any free port")
    .option("--home <directory>", "same as SVC_HOME; a second server on the machine needs its own")
    .action((options: ServeOptions) => serve(program, options, role));
}

/** @param role overrides SVC_ROLE */
async function serve(program: string, options: ServeOptions, role?: "gateway" | "worker"): Promise<void> {
  const environment = environmentWith({
    SVC_ROLE: role,
    SVC_API_KEY: options.apiKey,
    SVC_API_HOST: options.host,
    SVC_API_PORT: options.port,
    SVC_HOME: options.home,
    CITY_BRIDGE_PORT: options.cityPort,
  });
  const config = loadConfig(environment);
  process.umask(config.umask);
  const isAlone = config.role === "all";
  const servesMusic = !isAlone || options.music === true || options.city !== true;
  const servesCity = isAlone && (options.city === true || options.music !== true);
  const { checkCitySettings, checkMusicSettings } = await import("./start-checks.js");
  if (servesMusic) await checkMusicSettings(config);
  if (servesCity) await checkCitySettings(config);
  const log = createLogger(config.logLevel);
  for (const warning of ignoredSettings(environment)) log.warn(warning);
  const start = async (add: (service: Service) => void, fail: (err: Error, what: string) => void) => {
    const onDeviceLost = (error: Error) =>
      fail(error, "the GPU failed, so the server stops; restart it to continue its tasks");
    /** A service that cannot start does not stop the other one, unless a setting is wrong. */
    const orWithout = async <T>(service: string, begin: Promise<T>): Promise<T | null> => {
      try {
        return await begin;
      } catch (err) {
        if (!(servesMusic && servesCity) || err instanceof ConfigError) throw err;
        log.error(
          { err },
          `${service} cannot start, so the server runs without it: ${(err as Error).message}`,
        );
        return null;
      }
    };
    const music = servesMusic ? await orWithout("music", addMusic(config, log, add, onDeviceLost)) : null;
    const musicUrl = music && orWithout("music", music.start());
    musicUrl?.catch(() => {});
    let cityUrl: string | null = null;
    if (servesCity) {
      const { CityProcess } = await import("../city/process.js");
      const city = new CityProcess({ command: [program, "city", "--for-parent"], environment, log });
      add(city);
      cityUrl = await orWithout("the city", city.start());
      if (cityUrl !== null) console.log(`city on ${cityUrl}`);
      else city.keepTrying();
    }
    const url = await musicUrl;
    if (url) console.log(`${isAlone ? "music" : config.role} on ${url}`);
    else if (cityUrl === null) throw new Error("neither music nor the city could start");
  };
  await serveUntilStopped(log, start, undefined, config.graceSeconds);
}

/**
 * Creates the engine, except in a gateway. Registers a shutdown step that closes the server, then the engine.
 * @returns `start`, which starts the server and resolves with its URL
 */
async function addMusic(
  config: Config,
  log: Logger,
  add: (service: Service) => void,
  onDeviceLost: (error: Error) => void,
) {
  const { createEngine, createMusicServer, createWorker } = await import("../index.js");
  const { checkDevices } = await import("./start-checks.js");
  const isGateway = config.role === "gateway";
  const engine = isGateway ? undefined : createEngine(config, (message) => log.info(message), onDeviceLost);
  let server: Pick<MusicServer, "url" | "close"> | undefined;
  add({
    close: async (graceSeconds) => {
      await server?.close(graceSeconds);
      await engine?.close();
    },
  });
  if (engine !== undefined) checkDevices(config, engine.catalog.runtimeInfo());
  const create = config.role === "worker" ? createWorker : createMusicServer;
  return {
    start: async (): Promise<string> => {
      server = await create({ config, log, ...(engine && { engine }) });
      return server.url;
    },
  };
}
