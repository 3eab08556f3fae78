/**
 * A server process whose engine is a stand-in, for tests that kill it: `stub-server.ts [RENDER_MS]`. What `carillon
 * serve` does besides, it does too. SIGUSR2 makes something go wrong that nobody catches.
 */
import { loadConfig } from "../../src/config.js";
import { createMusicServer } from "../../src/index.js";
import { createLogger } from "../../src/log.js";
import { serveUntilStopped } from "../../src/service-process.js";
import { stubEngine } from "../music/stub-engine.js";

const renderMs = Number(process.argv[2] ?? 50);
const config = loadConfig(process.env);

process.on("SIGUSR2", () => void Promise.reject(new Error("nobody caught this")));

await serveUntilStopped(createLogger(config.logLevel), async (add) => {
  const engine = stubEngine(() => renderMs);
  const music = await createMusicServer({ config, engine, log: createLogger(config.logLevel) });
  add(music);
  console.log(`music on ${music.url}`);
});
