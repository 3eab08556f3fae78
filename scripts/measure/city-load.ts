/**
 * Measures the speed and response times of the city. The server runs the compiled code of dist/:
 * npm run build && node --import tsx scripts/measure/city-load.ts
 *
 * The city has more than 100,000 citizens, 12,000 growables and 5,000 segments, and runs at speed 3 in its own process.
 * - Frames: share of the nominal frames that the city simulates without requests.
 * - Reads: response times of every endpoint with 5,000 rows, one request after another.
 * - Processor: CPU time of reads, commands, saves and frames in this process. CPU time
 *   depends less on other load than response times do. The first run of each is listed separately, because V8 still
 *   compiles the code.
 * - Longest turns: CPU times of the longest turn of the event loop, for all reads and for loading a save.
 * - Detectors: times of the six problem detectors, on street grids of growing size.
 */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { findBuildingOverlaps } from "../../src/city/anomalies/building-overlaps.js";
import { RoadIndex } from "../../src/city/anomalies/road-index.js";
import { findConflictingRoads, findDeadEnds, findShortStubs } from "../../src/city/anomalies/road-network.js";
import { findTerrainMismatches } from "../../src/city/anomalies/road-terrain.js";
import { findMottledZones } from "../../src/city/anomalies/zone-mottling.js";
import { paint } from "../../src/city/capture/scene.js";
import { buildGrid } from "../../src/city/commands/build-grid.js";
import { repairZoneClusters } from "../../src/city/commands/repair-zone-clusters.js";
import { repairZonesToGrowables } from "../../src/city/commands/repair-zones-to-growables.js";
import { READ_ROUTES } from "../../src/city/embedded-routes.js";
import { EmbeddedGame, FRAMES_PER_SECOND } from "../../src/city/simulation/embedded-game.js";
import { capturePieces, writeCapture } from "../../src/city/simulation/saves/capture.js";
import { readSave, SaveFiles } from "../../src/city/simulation/saves/save-files.js";
import { FRAMES_PER_WEEK } from "../../src/city/simulation/state/calendar.js";
import type { World } from "../../src/city/simulation/state/world.js";
import { tick } from "../../src/city/simulation/tick.js";
import { type JsonObject, writeJsonPieces } from "../../src/city/wire/answers.js";
import { Query } from "../../src/city/wire/requests.js";
import { advance, largeCity, layLattice, newCity } from "../../test/city/simulation/towns.js";

const SPEED_SECONDS = 30;
const GAME_SECONDS_PER_WEEK = 7 * 24 * 3600;
const REQUESTS_PER_ENDPOINT = 200;
/** A measurement starts no new round after this time. */
const MEASURE_MS = 2_000;
const PROCESSOR_ROUNDS = 60;
/** Reads whose processor time is not that of one turn, and the list of saves, which reads a folder. */
const READS_IN_STEPS = ["/state/saves", "/state/hash", "/state/advice", "/state/problems"];
const COMMAND_ROUNDS = 5;
const FRAMES = 4096;
/** Weeks after which the added residents have found work or left. */
const WEEKS_TO_SETTLE = 3;
const DETECTOR_ROUNDS = 7;
const GRID_SIDES = [22, 50, 100];

const ZONE_RULES = { minMinorityCells: 3, minUnzonedCells: 6, includeUnzonedHoles: true };
const DEAD_END_RULES = { nearMissDistance: 16, includeDeadEnds: true };

const DETECTORS: Record<string, (city: World) => unknown> = {
  "short stubs": (city) => findShortStubs(new RoadIndex(city), 28),
  "conflicting roads": (city) => findConflictingRoads(new RoadIndex(city)),
  terrain: (city) => findTerrainMismatches(city, new RoadIndex(city)),
  "dead ends": (city) => findDeadEnds(city, new RoadIndex(city), DEAD_END_RULES),
  buildings: (city) => findBuildingOverlaps(city, new RoadIndex(city)),
  zones: (city) => findMottledZones(city, ZONE_RULES),
};

/** Measures the milliseconds of each detector in the fastest of several runs. */
function detectorTimes(city: World): Record<string, number> {
  const times = Object.entries(DETECTORS).map(([name, detect]) => {
    const rounds = Array.from({ length: DETECTOR_ROUNDS }, () => {
      // Each run needs a new object, because caches belong to the object.
      const unknown: World = Object.create(city);
      const startedMs = performance.now();
      detect(unknown);
      return performance.now() - startedMs;
    });
    return [name, Math.min(...rounds)] as const;
  });
  const total = times.reduce((sum, [, milliseconds]) => sum + milliseconds, 0);
  return Object.fromEntries([...times, ["all six", total]].map(([name, ms]) => [name, round(Number(ms))]));
}

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

async function serverTimes(save: string, directory: string): Promise<Record<string, unknown>> {
  return withServer(save, directory, async (url) => {
    await measureSpeed(url);
    return await measureReads(url);
  });
}

async function measureReads(url: string): Promise<Record<string, unknown>> {
  const table: Record<string, unknown> = {};
  for (const { path } of READ_ROUTES) {
    const milliseconds: number[] = [];
    let bytes = 0;
    for (const _ of rounds(REQUESTS_PER_ENDPOINT)) {
      const startedMs = performance.now();
      bytes = (await (await fetch(`${url}${path}?limit=5000`)).arrayBuffer()).byteLength;
      milliseconds.push(performance.now() - startedMs);
    }
    table[path] = { ...quantiles(milliseconds), kilobytes: round(bytes / 1000) };
  }
  return table;
}

/** Measures the CPU milliseconds that each read endpoint takes to collect the rows and write the JSON. */
function readProcessorTimes(city: World): Record<string, unknown> {
  const game = new EmbeddedGame({ savesDirectory: "unused", onSaveFailed: () => {} });
  const routes = READ_ROUTES.filter(({ path }) => !READS_IN_STEPS.includes(path));
  const rows = routes.map(({ path, read }) => {
    const query = new Query(`${path}?limit=5000`);
    const work = () => writeJsonPieces(read({ game, world: city, query, id: Number.NaN }) as JsonObject);
    return [path, processorTimes(PROCESSOR_ROUNDS, work)] as const;
  });
  return Object.fromEntries(rows);
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

/** Measures the CPU milliseconds of work that blocks the event loop: large commands, a frame and a save. */
function workProcessorTimes(city: World): Record<string, unknown> {
  const time = (command: () => unknown) => processorTimes(COMMAND_ROUNDS, command);
  let grids = 0;
  const clusters = {
    dryRun: false,
    includePatchy: true,
    fillUnzoned: true,
    preferGrowableZone: true,
    gridSize: 80,
    minMinorityCells: 3,
    minUnzonedCells: 6,
  };
  return {
    "repair-zones-to-growables": time(() => repairZonesToGrowables.act(city, { dryRun: false })),
    "repair-zone-clusters": time(() => repairZoneClusters.act(city, clusters)),
    frame: processorTimes(FRAMES, () => tick(city)),
    ...saveProcessorTimes(city),
    "map image, first piece": processorTimes(COMMAND_ROUNDS, () => paint(city, VIEW, null).next()),
    "build-grid of 400 blocks": time(() => buildGrid.act(city, gridAt(++grids))),
  };
}

/** Measures the CPU milliseconds of the pieces of a save. The event loop runs between two pieces. */
function saveProcessorTimes(city: World): Record<string, unknown> {
  const [copy, write]: number[][] = [[], []];
  for (let round = 0; round < COMMAND_ROUNDS; round++) {
    const pieces = capturePieces(city);
    let step = timed(copy as number[], () => pieces.next());
    while (!step.done) step = timed(copy as number[], () => pieces.next());
    const texts = writeCapture(step.value);
    while (!timed(write as number[], () => texts.next()).done);
  }
  return {
    "save: copy one piece": quantiles(copy as number[]),
    "save: write one piece": quantiles(write as number[]),
  };
}

const VIEW = { center: { x: 0, z: 0 }, sizeMeters: 9_000, pixels: 1024 };

/** Fields of a `build-grid` command. Grids of different indexes do not overlap. */
function gridAt(index: number) {
  const shape = { cols: 20, rows: 20, spacing: 64, rotationDegrees: 0, snapDistance: 2 };
  const origin = { x: -8_000 + 1_400 * index, z: 3_000 };
  return { dryRun: false, opId: "", roadPrefab: "Basic Road", name: "", origin, ...shape };
}

function processorTimes(most: number, work: () => unknown) {
  const milliseconds: number[] = [];
  for (const _ of rounds(most)) timed(milliseconds, work);
  return quantiles(milliseconds);
}

/** Yields the index of each round. Ends after MEASURE_MS or `most` rounds, but runs at least one round. */
function* rounds(most: number): Generator<number> {
  const endMs = performance.now() + MEASURE_MS;
  for (let round = 0; round < most && (round === 0 || performance.now() < endMs); round++) yield round;
}

/** Runs `work` and appends its CPU milliseconds to `milliseconds`. */
function timed<T>(milliseconds: number[], work: () => T): T {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  milliseconds.push((user + system) / 1000);
  return result;
}

async function withServer<T>(save: string, directory: string, work: (url: string) => Promise<T>): Promise<T> {
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

async function loadLargeCity(path: string): Promise<World> {
  const { world } = await readSave(path);
  world.unlimitedMoney = true;
  return world;
}

const directory = await mkdtemp(join(tmpdir(), "carillon-load-"));
try {
  const path = await saveLargeCity(directory);
  const large = await loadLargeCity(path);
  const growables = large.buildings.all().filter(({ prefab }) => prefab.growable).length;
  console.log(`${large.citizens.size} citizens, ${growables} growables, ${large.segments.size} segments`);
  console.log("\nOver HTTP at speed 3, milliseconds");
  console.table(await serverTimes(path, directory));
  console.log("\nIn this process, CPU milliseconds");
  console.table(workProcessorTimes(large));
  console.table(readProcessorTimes(large));
  console.log("\nLongest turn of the event loop, CPU milliseconds");
  console.table(await longestTurns(large, path));
  console.log("\nDetectors, milliseconds");
  console.table({ "large city": detectorTimes(large) });
} finally {
  await rm(directory, { recursive: true });
}
for (const side of GRID_SIDES) {
  const city = newCity("empty");
  layLattice(city, -4000, -4000, side, side);
  console.table({ [`${city.segments.all().length} segments`]: detectorTimes(city) });
}
