/**
 * Measures the speed and response times of the city. The server runs the compiled code of dist/:
 * npm run build && node --import tsx scripts/measure/city-load.ts
 *
 * The city has more than 100,000 citizens, 12,000 growables and 5,000 segments, and runs at speed 3 in its own process.
 * - Frames: share of the nominal frames that the city simulates without requests.
 * - Reads: response times of every endpoint with 5,000 rows, one request after another. The first of each is listed
 *   separately, because V8 still compiles the code.
 * - Longest turns: CPU times of the longest turn of the event loop, for all reads and for loading a save.
 */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { READ_ROUTES } from "../../src/city/embedded-routes.js";
import { EmbeddedGame, FRAMES_PER_SECOND } from "../../src/city/simulation/embedded-game.js";
import { readSave, SaveFiles } from "../../src/city/simulation/saves/save-files.js";
import { FRAMES_PER_WEEK } from "../../src/city/simulation/state/calendar.js";
import type { World } from "../../src/city/simulation/state/world.js";
import { writeJsonPieces } from "../../src/city/wire/answers.js";
import { Query } from "../../src/city/wire/requests.js";
import { advance, largeCity } from "../../test/city/simulation/towns.js";

const SPEED_SECONDS = 30;
const GAME_SECONDS_PER_WEEK = 7 * 24 * 3600;
const REQUESTS_PER_ENDPOINT = 200;
/** The reads of an endpoint start no new round after this time. */
const MEASURE_MS = 2_000;
/** Weeks after which the added residents have found work or left. */
const WEEKS_TO_SETTLE = 3;

/**
 * Prints the percentage of nominal frames that an idle server simulates. Also prints the share of a core that
 * all nominal frames would need.
 */
async function measureSpeed(url: string): Promise<void> {
  const measure = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    const metric = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    return {
      frames: (metric("carillon_city_time_seconds") / GAME_SECONDS_PER_WEEK) * FRAMES_PER_WEEK,
      cpuSeconds: metric("process_cpu_seconds_total"),
    };
  };
  await fetch(`${url}/commands/set-simulation-speed`, { method: "POST", body: '{"speed":3}' });
  const [before, startedMs] = [await measure(), performance.now()];
  await setTimeout(SPEED_SECONDS * 1000);
  const seconds = (performance.now() - startedMs) / 1000;
  const after = await measure();
  const frames = after.frames - before.frames;
  const nominal = 4 * FRAMES_PER_SECOND * seconds;
  const cpuMs = (1000 * (after.cpuSeconds - before.cpuSeconds)) / frames;
  console.log(
    `\n${round(frames / seconds)} frames per second, ${round((100 * frames) / nominal)} % of nominal`,
  );
  console.log(
    `${round(cpuMs)} CPU milliseconds per frame: ${round(0.4 * FRAMES_PER_SECOND * cpuMs)} % of a core at nominal speed`,
  );
}

async function measureReads(url: string): Promise<Record<string, unknown>> {
  const table: Record<string, unknown> = {};
  for (const { path } of READ_ROUTES) {
    const milliseconds: number[] = [];
    let bytes = 0;
    const endMs = performance.now() + MEASURE_MS;
    while (milliseconds.length < REQUESTS_PER_ENDPOINT && performance.now() < endMs) {
      const startedMs = performance.now();
      bytes = (await (await fetch(`${url}${path}?limit=5000`)).arrayBuffer()).byteLength;
      milliseconds.push(performance.now() - startedMs);
    }
    table[path] = { ...quantiles(milliseconds), kilobytes: round(bytes / 1000) };
  }
  return table;
}

/**
 * Measures the CPU milliseconds of the longest turn of the event loop: while a save is loaded, and during the first and
 * second call of each read.
 */
async function longestTurns(city: World, save: string): Promise<Record<string, unknown>> {
  const game = new EmbeddedGame({ savesDirectory: "unused", onSaveFailed: () => {} });
  const table: Record<string, unknown> = {
    "load a save": { first: await longestTurn(() => readSave(save)) },
  };
  for (const { path, read } of READ_ROUTES) {
    const query = new Query(`${path}?limit=5000`);
    const work = async () => writeJsonPieces(await read({ game, world: city, query, id: Number.NaN }));
    table[path] = { first: await longestTurn(work), second: await longestTurn(work) };
  }
  return table;
}

async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let [longest, isDone, before] = [0, false, process.cpuUsage()];
  const endTurn = () => {
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.cpuUsage();
    if (!isDone) setImmediate(endTurn);
  };
  setImmediate(endTurn);
  await work();
  endTurn();
  isDone = true;
  return round(longest);
}

async function withServer(save: string, directory: string, work: (url: string) => Promise<void>) {
  const cli = join(import.meta.dirname, "../../dist/cli/main.js");
  const args = [cli, "city", "--load", save, "--port", "0"];
  const env = { ...process.env, CITY_SAVES_DIR: directory };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^city on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return await work(url);
    }
    throw new Error("the server exited before it was ready");
  } finally {
    child.kill();
  }
}

/** Returns the first duration, and the mean and quantiles of the others. */
function quantiles([first = 0, ...milliseconds]: readonly number[]) {
  if (milliseconds.length === 0) return { first: round(first) };
  const sorted = milliseconds.sort((a, b) => a - b);
  const quantile = (q: number) => round(sorted[Math.ceil(q * sorted.length) - 1] as number);
  const mean = round(milliseconds.reduce((sum, each) => sum + each, 0) / milliseconds.length);
  return { first: round(first), mean, p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Builds the measured city and saves it in a directory. Returns the path. */
async function saveLargeCity(directory: string): Promise<string> {
  const city = largeCity();
  advance(city, WEEKS_TO_SETTLE * FRAMES_PER_WEEK);
  const files = new SaveFiles(directory, (error) => console.error(error));
  const { path } = files.begin(city, "Large");
  await files.settled();
  return path;
}

const directory = await mkdtemp(join(tmpdir(), "carillon-load-"));
try {
  const path = await saveLargeCity(directory);
  const { world } = await readSave(path);
  const growables = world.buildings.all().filter(({ prefab }) => prefab.growable).length;
  console.log(`${world.citizens.size} citizens, ${growables} growables, ${world.segments.size} segments`);
  await withServer(path, directory, async (url) => {
    await measureSpeed(url);
    console.log("\nOver HTTP at speed 3, milliseconds");
    console.table(await measureReads(url));
  });
  console.log("\nLongest turn of the event loop, CPU milliseconds");
  console.table(await longestTurns(world, path));
} finally {
  await rm(directory, { recursive: true });
}
