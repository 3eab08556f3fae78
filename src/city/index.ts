/** Starts the city bridge, in front of the embedded city or of a running game. */
import type { Config } from "../config.js";
import { isLoopbackName } from "../http/origins.js";
import { ConfigError } from "../system/config-error.js";
import { lockDirectory } from "../system/directory-lock.js";
import type { Logger } from "../system/log.js";
import { BRIDGE_NAME, embeddedRoutes } from "./embedded-routes.js";
import { forwardingRoutes } from "./live/forward.js";
import { Overlay } from "./overlay.js";
import { type BridgeServer, type BridgeServerOptions, startServer } from "./server.js";
import { EmbeddedGame } from "./simulation/embedded-game.js";
import { timestamp } from "./views/listing.js";

const DEFAULT_SEED = 1;
/** Maximum time to wait for the lock. A city process of an earlier server may still be saving (process.ts). */
const LOCK_WAIT_SECONDS = 8;

type BridgeConfig = Pick<
  Config,
  | "cityPort"
  | "cityAllowedOrigins"
  | "cityGameUrl"
  | "citySavesDirectory"
  | "cityAutosaveSeconds"
  | "cityNew"
  | "cityUnlimitedMoney"
>;

/**
 * Starts the bridge. Resolves once the bridge answers requests. `close` saves the city.
 * @param options.load path of a save to load instead of the newest one
 * @throws SaveFileError when the city cannot be loaded; ConfigError when the settings contradict each other;
 *   DirectoryInUseError when another city saves into the same directory
 */
export async function startCity(
  config: BridgeConfig,
  log: Logger,
  { load }: { readonly load?: string | undefined } = {},
): Promise<BridgeServer> {
  const options = { port: config.cityPort, allowedOrigins: config.cityAllowedOrigins, log };
  if (config.cityGameUrl !== null) {
    if (load !== undefined) {
      throw new ConfigError(
        "CITY_GAME_URL",
        "CITY_GAME_URL is set: a save can be loaded only into the embedded city",
      );
    }
    return startServer(forwardingRoutes(gameAddress(config.cityGameUrl, config.cityPort)), options);
  }
  const directory = config.citySavesDirectory;
  let lock = await lockDirectory(directory, "CITY_SAVES_DIR", {
    limitMs: LOCK_WAIT_SECONDS * 1000,
    onWait: () =>
      log.warn(`${directory} is in use by another city: waiting at most ${LOCK_WAIT_SECONDS} s for its end`),
  });
  const game = new EmbeddedGame({
    savesDirectory: directory,
    unlimitedMoney: config.cityUnlimitedMoney,
    autosaveSeconds: config.cityAutosaveSeconds,
    onSaveFailed: (error) => log.error({ err: error }, error.message),
    // The lock went with the directory that was removed.
    onDirectoryMade: async () => {
      await lock.release();
      lock = await lockDirectory(directory, "CITY_SAVES_DIR");
    },
  });
  try {
    const isResumed = await beginCity(game, config, log, load);
    const bridge = await startGameBridge(game, options);
    // Saves immediately, so that the next start resumes this city even if the process is killed before an
    // automatic save.
    if (!isResumed) await game.autosave();
    return {
      url: bridge.url,
      close: async () => {
        await bridge.close();
        await game.autosave();
        await game.close();
        await lock.release();
      },
    };
  } catch (error) {
    await game.close();
    await lock.release();
    throw error;
  }
}

/** Loads the requested save, else the newest, else starts a new city. Returns whether the newest save was resumed. */
async function beginCity(
  game: EmbeddedGame,
  { cityNew }: BridgeConfig,
  log: Logger,
  load: string | undefined,
): Promise<boolean> {
  if (load !== undefined) {
    await game.loadCity(load);
    return false;
  }
  const onRefused = (error: Error) =>
    log.error(
      { err: error },
      `${error.message}; the file is kept, and the next older save is loaded instead`,
    );
  const resumed = cityNew ? null : await game.resumeCity(onRefused);
  if (resumed !== null && game.world) {
    const { clock, citizens } = game.world;
    log.info(`resumed ${resumed}: ${citizens.size} citizens, ${timestamp(clock.gameTimeMs).slice(0, 10)}`);
    return true;
  }
  game.startCity({ seed: DEFAULT_SEED, map: "highway", paused: false });
  log.info("started a new city");
  return false;
}

/** Serves a game inside this process. The caller closes the game. */
export async function startGameBridge(
  game: EmbeddedGame,
  options: BridgeServerOptions,
): Promise<BridgeServer> {
  const overlay = new Overlay();
  const greet = () => {
    if (game.world) overlay.notify(`API ready: ${BRIDGE_NAME}`);
    else overlay.clear();
  };
  greet();
  const unsubscribe = game.onCityChanged(greet);
  const closing = new AbortController();
  const server = await startServer(embeddedRoutes(game, overlay, closing.signal), options);
  return {
    url: server.url,
    close: async () => {
      unsubscribe();
      closing.abort();
      await server.close();
    },
  };
}

/** @throws ConfigError when the bridge would forward to itself */
function gameAddress(text: string, ownPort: number): URL {
  const game = new URL(text);
  if (game.protocol !== "http:" && game.protocol !== "https:") {
    const message = `CITY_GAME_URL must begin with http:// or https://, got "${text}"`;
    throw new ConfigError("CITY_GAME_URL", message);
  }
  if (isLoopbackName(game.hostname) && Number(game.port) === ownPort) {
    const message = `CITY_GAME_URL has port ${ownPort}, on which this bridge listens: set CITY_BRIDGE_PORT to another port`;
    throw new ConfigError("CITY_GAME_URL", message);
  }
  return game;
}
