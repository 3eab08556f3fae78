/**
 * Measures how many times faster than game speed 3 `POST /commands/advance` runs, and the latency of reads meanwhile:
 * node --import tsx scripts/measure/city-advance.ts [CITIZENS] [SECONDS]
 *
 * The town is a grid with every service and has CITIZENS residents (default: 5,000).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { startGameBridge } from "../../src/city/index.js";
import { EmbeddedGame, FRAMES_PER_SECOND } from "../../src/city/simulation/embedded-game.js";
import { createLogger } from "../../src/system/log.js";
import { buildGridTown, fillHomes } from "./grid-town.js";

const [citizens = "5000", seconds = "10"] = process.argv.slice(2);
const SPEED_3_FRAMES_PER_SECOND = 4 * FRAMES_PER_SECOND;

const savesDirectory = await mkdtemp(join(tmpdir(), "city-advance-"));
const game = new EmbeddedGame({ savesDirectory, onSaveFailed: console.error, unlimitedMoney: true });
const city = game.startCity({ seed: 7, map: "highway", paused: true });
buildGridTown(city);
const bridge = await startGameBridge(game, { port: 0, allowedOrigins: [], log: createLogger("silent") });

async function advance(limits: object): Promise<void> {
  const body = JSON.stringify({ maxSeconds: Number(seconds), ...limits });
  const answer = await fetch(`${bridge.url}/commands/advance`, { method: "POST", body });
  const report = (await answer.json()) as { frames: number; seconds: number; citizens: { after: number } };
  const perSecond = report.frames / report.seconds;
  console.log(
    `${report.citizens.after} citizens, ${cpus()[0]?.model}: ${perSecond.toFixed(0)} frames per second, ` +
      `${(perSecond / SPEED_3_FRAMES_PER_SECOND).toFixed(1)} times speed 3`,
  );
}

await advance({ weeks: 104, maxSeconds: 120 });
fillHomes(city, Number(citizens));
await advance({ weeks: 522 });
let isDone = false;
const waits: number[] = [];
const advanced = advance({ weeks: 522 }).finally(() => {
  isDone = true;
});
while (!isDone) {
  const startMs = performance.now();
  await (await fetch(`${bridge.url}/state/summary`)).arrayBuffer();
  waits.push(performance.now() - startMs);
}
await advanced;
waits.sort((a, b) => a - b);
const quantile = (share: number) => waits[Math.floor(share * (waits.length - 1))]?.toFixed(1);
console.log(
  `${waits.length} reads during the advance: median ${quantile(0.5)} ms, 99 % ${quantile(0.99)} ms, longest ${quantile(1)} ms`,
);
await bridge.close();
await game.close();
await rm(savesDirectory, { recursive: true });
