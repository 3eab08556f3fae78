/** The city bridge: the city inside this process, or a running game's behind it. */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config.js";
import { ConfigError } from "../config.js";
import { lockDirectory } from "../directory-lock.js";
import type { Logger } from "../log.js";
import { isLoopbackHost } from "./access.js";
import { BRIDGE_NAME, embeddedRoutes } from "./embedded-routes.js";
import type { Game } from "./game.js";
import { forwardingRoutes } from "./live/forward.js";
import { Overlay } from "./overlay.js";
import { type BridgeServer, type BridgeServerOptions, startServer } from "./server.js";
import { AUTOSAVE_NAME, EmbeddedGame } from "./simulation/embedded-game.js";

const SECONDS_PER_MINUTE = 60;
const DEFAULT_SEED = 1;
const EARLIER_AUTOSAVE_NAME = `${AUTOSAVE_NAME} of the earlier run`;

export type CityBridge = BridgeServer;

export interface CityStart {
  /** A saved city to go on with; a new one begins without it. */
  readonly load?: string | undefined;
}

type BridgeConfig = Pick<
  Config,
  "cityPort" | "cityAllowedOrigins" | "cityGameUrl" | "citySavesDirectory" | "cityAutosaveSeconds"
>;

/**
 * Starts the bridge; resolves once it answers.
 * @throws SaveFileError when the city cannot be loaded; ConfigError when the settings contradict each other;
 *   DirectoryInUseError when another city saves into the same directory
 */
export async function startCity(
  config: BridgeConfig,
  log: Logger,
  { load }: CityStart = {},
): Promise<CityBridge> {
  const options = { port: config.cityPort, allowedOrigins: config.cityAllowedOrigins, log };
  if (config.cityGameUrl !== null) {
    if (load !== undefined) {
      throw new ConfigError("CITY_GAME_URL", "CITY_GAME_URL is set: a running game loads its own cities");
    }
    return startServer(forwardingRoutes(gameAddress(config.cityGameUrl, config.cityPort)), options);
  }
  const lock = await lockDirectory(config.citySavesDirectory, "CITY_SAVES_DIR");
  const game = new EmbeddedGame({
    savesDirectory: config.citySavesDirectory,
    autosaveMinutes: config.cityAutosaveSeconds / SECONDS_PER_MINUTE,
    onSaveFailed: (error) => log.error({ err: error }, error.message),
  });
  try {
    if (load === undefined) {
      await keepAutosave(config.citySavesDirectory);
      game.startCity({ seed: DEFAULT_SEED, map: "highway", paused: false });
    } else {
      await game.loadCity(load);
    }
    const bridge = await startGameBridge(game, options);
    return {
      url: bridge.url,
      close: async () => {
        await bridge.close();
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

/** Serves a game inside this process. The game stays the caller's. */
export async function startGameBridge(game: Game, options: BridgeServerOptions): Promise<BridgeServer> {
  const overlay = new Overlay();
  const greet = () => {
    if (game.city) overlay.notify(`API ready: ${BRIDGE_NAME}`);
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

/** The automatic save of an earlier run gets another name, so that the new city's does not replace it. */
async function keepAutosave(directory: string): Promise<void> {
  const pathOf = (name: string) => join(directory, `${name}.crp`);
  await rename(pathOf(AUTOSAVE_NAME), pathOf(EARLIER_AUTOSAVE_NAME)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}

/** @throws ConfigError when the bridge would forward to itself */
function gameAddress(text: string, ownPort: number): URL {
  const game = new URL(text);
  if (game.protocol !== "http:" && game.protocol !== "https:") {
    throw new ConfigError(
      "CITY_GAME_URL",
      `CITY_GAME_URL must begin with http:// or https://, got "${text}"`,
    );
  }
  if (isLoopbackHost(game.hostname) && Number(game.port) === ownPort) {
    throw new ConfigError(
      "CITY_GAME_URL",
      `CITY_GAME_URL names port ${ownPort}, where this bridge itself listens: set CITY_BRIDGE_PORT to another`,
    );
  }
  return game;
}
