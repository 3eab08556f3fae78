/**
 * Measures the frame rate of the city page while it is dragged and zoomed, in headless Chromium:
 * node --import tsx scripts/measure/city-page.ts [CITIZENS]
 *
 * The town has 5,000 citizens by default and runs at speed 1. Frames are counted by the page itself.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startGameBridge } from "../../src/city/index.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import { shownDemand } from "../../src/city/simulation/life/demand.js";
import { growOnBlock } from "../../src/city/simulation/life/growth.js";
import { createLogger } from "../../src/system/log.js";
import { launchBrowser } from "../../test/browser.js";
import { advance } from "../../test/city/simulation/towns.js";
import { buildGridTown, fillHomes } from "./grid-town.js";

const [citizens = "5000"] = process.argv.slice(2);
const MOVES = 120;
const GROWTH_ROUNDS = 20;
const FOUR_WEEKS_FRAMES = 4 * 4096;

const savesDirectory = await mkdtemp(join(tmpdir(), "city-page-"));
const game = new EmbeddedGame({ savesDirectory, onSaveFailed: console.error, unlimitedMoney: true });
const city = game.startCity({ seed: 7, map: "highway", paused: true });
buildGridTown(city);
for (let round = 0; round < GROWTH_ROUNDS; round++) {
  for (const block of city.blocks.all()) {
    Object.assign(shownDemand(city), { residential: 100, commercial: 100, workplace: 100 });
    growOnBlock(city, block);
  }
}
fillHomes(city, Number(citizens));
advance(city, FOUR_WEEKS_FRAMES);
fillHomes(city, Number(citizens));
const bridge = await startGameBridge(game, { port: 0, allowedOrigins: [], log: createLogger("silent") });
const browser = await launchBrowser();
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.goto(bridge.url);
await page.waitForTimeout(5000);
const order = (body: object) =>
  fetch(`${bridge.url}/commands/set-simulation-speed`, { method: "POST", body: JSON.stringify(body) });
await order({ paused: false, speed: 1 });
console.log(`${city.citizens.size} citizens, ${city.buildings.all().length} buildings, ${cpus()[0]?.model}`);

/** Prints the frame rate during `work`, and the longest time between two frames. */
async function measure(name: string, work: (page: Page) => Promise<void>): Promise<void> {
  await page.evaluate(`(() => {
    const frames = [performance.now()];
    window.frameTimes = frames;
    const count = (now) => { frames.push(now); if (window.frameTimes === frames) requestAnimationFrame(count); };
    requestAnimationFrame(count);
  })()`);
  await work(page);
  const times = (await page.evaluate(
    "(() => { const t = window.frameTimes; window.frameTimes = null; return t; })()",
  )) as number[];
  const waits = times.slice(1).map((time, i) => time - (times[i] as number));
  const seconds = ((times.at(-1) as number) - (times[0] as number)) / 1000;
  console.log(
    `${name}: ${(waits.length / seconds).toFixed(1)} frames per second, longest frame ${Math.max(...waits).toFixed(0)} ms`,
  );
}

const drag = async ({ mouse }: Page) => {
  await mouse.move(500, 400);
  await mouse.down();
  for (let i = 1; i <= MOVES; i++)
    await mouse.move(500 + 240 * Math.sin(i / 12), 400 + 160 * Math.sin(i / 17));
  await mouse.up();
};
const zoom = async ({ mouse }: Page) => {
  await mouse.move(500, 400);
  for (let i = 0; i < MOVES; i++) await mouse.wheel(0, i % 40 < 20 ? -60 : 60);
};

await measure("drag, whole city", drag);
await measure("zoom, whole city", zoom);
for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Zoom in" }).click();
await page.waitForTimeout(500);
await measure("drag, close-up", drag);
await measure("zoom, close-up", zoom);
await measure("at rest, close-up", () => page.waitForTimeout(2000));

await browser.close();
await bridge.close();
await game.close();
await rm(savesDirectory, { recursive: true });
