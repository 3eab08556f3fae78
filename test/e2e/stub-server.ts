/**
 * A server process with a stub engine, for tests that kill it: `stub-server.ts [RENDER_MS [MODEL]]`.
 * Everything but the engine is the same as in `carillon serve`. SIGUSR2 causes an uncaught error. SIGWINCH
 * deletes expired songs at once.
 */
import { loadConfig } from "../../src/config.js";
import { createMusicServer, createWorker, type MusicServer } from "../../src/index.js";
import { createLogger } from "../../src/system/log.js";
import { type Service, serveUntilStopped } from "../../src/system/service-process.js";
import { stubEngine } from "../music/stub-engine.js";

const renderMs = Number(process.argv[2] ?? 50);
const model = process.argv[3];
const config = loadConfig(process.env);

process.on("SIGUSR2", () => void Promise.reject(new Error("an uncaught error")));

const log = createLogger(config.logLevel);
const start = async (add: (service: Service) => void) => {
  const engine = stubEngine(() => renderMs, model);
  const create = config.role === "worker" ? createWorker : createMusicServer;
  const music = await create({ config, log, ...(config.role === "gateway" ? {} : { engine }) });
  add(music);
  if ("service" in music) process.on("SIGWINCH", () => void (music as MusicServer).service.sweep());
  console.log(`music on ${music.url}`);
};
await serveUntilStopped(log, start, undefined, config.graceSeconds);
