/**
 * How fast the city runs and answers: npm run build && node --import tsx scripts/city-load.ts
 *
 * A city of 100,000 citizens, 12,000 growables and 5,000 segments runs at speed 3 in a process of its own. Frames: how
 * many it simulates, of the nominal, while nobody asks. Reads: every endpoint with 5,000 rows over HTTP, one request after
 * another, while it runs. Processor: the same reads, the largest commands and the frames in this process, by the processor
 * time they take, which other load on the machine disturbs less. Detectors: the six alone, on growing street grids.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { findBuildingOverlaps } from "../src/city/anomalies/building-overlaps.js";
import { RoadIndex } from "../src/city/anomalies/road-index.js";
import { findDeadEnds, findRoadPairs, findShortStubs } from "../src/city/anomalies/road-network.js";
import { findTerrainMismatches } from "../src/city/anomalies/road-terrain.js";
import { findMottledZones } from "../src/city/anomalies/zone-mottling.js";
import { paint } from "../src/city/capture/scene.js";
import type { BuildGrid } from "../src/city/composites.js";
import { READ_ROUTES } from "../src/city/embedded-routes.js";
import type { City, Command, Game } from "../src/city/game.js";
import { FRAMES_PER_SECOND } from "../src/city/simulation/embedded-game.js";
import { captureCity } from "../src/city/simulation/saves/capture.js";
import { SaveFiles } from "../src/city/simulation/saves/save-files.js";
import type { SimulatedCity } from "../src/city/simulation/simulated-city.js";
import { FRAMES_PER_WEEK } from "../src/city/simulation/state/calendar.js";
import { tick } from "../src/city/simulation/tick.js";
import { type JsonObject, writeJson } from "../src/city/wire/answers.js";
import { Query } from "../src/city/wire/requests.js";
import { advance, largeCity, layLattice, newCity } from "../test/city/simulation/towns.js";

const SPEED_SECONDS = 30;
const GAME_SECONDS_PER_WEEK = 7 * 24 * 3600;
const REQUESTS_PER_ENDPOINT = 200;
const PROCESSOR_ROUNDS = 60;
const COMMAND_ROUNDS = 5;
const FRAMES = 4096;
/** Weeks after which those who moved in by force have found work, or left. */
const WEEKS_TO_SETTLE = 3;
const DETECTOR_ROUNDS = 7;
const GRID_SIDES = [22, 50, 100];

const ZONE_RULES = { minMinorityCells: 3, minUnzonedCells: 6, includeUnzonedHoles: true };
const DEAD_END_RULES = { nearMissDistance: 16, includeDeadEnds: true };

const DETECTORS: Record<string, (city: City) => unknown> = {
  "short stubs": (city) => findShortStubs(new RoadIndex(city), 28),
  "road pairs": (city) => findRoadPairs(new RoadIndex(city)),
  terrain: (city) => findTerrainMismatches(city, new RoadIndex(city)),
  "dead ends": (city) => findDeadEnds(city, new RoadIndex(city), DEAD_END_RULES),
  buildings: (city) => findBuildingOverlaps(city, new RoadIndex(city)),
  zones: (city) => findMottledZones(city, ZONE_RULES),
};

/** The fastest of several rounds, in milliseconds: noise only ever adds. */
function detectorTimes(city: City): Record<string, number> {
  const times = Object.entries(DETECTORS).map(([name, detect]) => {
    const rounds = Array.from({ length: DETECTOR_ROUNDS }, () => {
      const startedMs = performance.now();
      detect(city);
      return performance.now() - startedMs;
    });
    return [name, Math.min(...rounds)] as const;
  });
  const total = times.reduce((sum, [, milliseconds]) => sum + milliseconds, 0);
  return Object.fromEntries([...times, ["all six", total]].map(([name, ms]) => [name, round(Number(ms))]));
}

/** The share of the nominal frames that a server simulates while nobody asks. */
async function measureSpeed(url: string): Promise<void> {
  const clock = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^carillon_city_time_seconds (\S+)$/m.exec(text)?.[1]);
  };
  await fetch(`${url}/commands/set-simulation-speed`, { method: "POST", body: '{"speed":3}' });
  const [before, startedMs] = [await clock(), performance.now()];
  await setTimeout(SPEED_SECONDS * 1000);
  const seconds = (performance.now() - startedMs) / 1000;
  const frames = (((await clock()) - before) / GAME_SECONDS_PER_WEEK) * FRAMES_PER_WEEK;
  const nominal = 4 * FRAMES_PER_SECOND * seconds;
  console.log(
    `\n${round(frames / seconds)} frames a second, ${round((100 * frames) / nominal)} % of nominal`,
  );
}

async function serverTimes(city: SimulatedCity): Promise<Record<string, unknown>> {
  const directory = await mkdtemp(join(tmpdir(), "carillon-load-"));
  try {
    const files = new SaveFiles(directory, (error) => console.error(error));
    const { path } = files.begin(city.world, "Large");
    await files.settled();
    return await withServer(path, directory, async (url) => {
      await measureSpeed(url);
      return await measureReads(url);
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function measureReads(url: string): Promise<Record<string, unknown>> {
  const table: Record<string, unknown> = {};
  for (const { path } of READ_ROUTES) {
    const milliseconds: number[] = [];
    let bytes = 0;
    for (let i = 0; i < REQUESTS_PER_ENDPOINT; i++) {
      const startedMs = performance.now();
      bytes = (await (await fetch(`${url}${path}?limit=5000`)).arrayBuffer()).byteLength;
      milliseconds.push(performance.now() - startedMs);
    }
    table[path] = { ...quantiles(milliseconds), kilobytes: round(bytes / 1000) };
  }
  return table;
}

/** Processor milliseconds of reading and writing, in this process. */
function readProcessorTimes(city: City): Record<string, unknown> {
  const game: Game = {
    city,
    listSaves: async () => ({ directory: "", saves: [] }),
    onCityChanged: () => () => {},
  };
  const routes = READ_ROUTES.filter(({ path }) => path !== "/state/saves");
  const rows = routes.map(({ path, read }) => {
    const work = () => writeJson(read({ game, city, query: new Query(`${path}?limit=5000`) }) as JsonObject);
    return [path, processorTimes(PROCESSOR_ROUNDS, work)] as const;
  });
  return Object.fromEntries(rows);
}

/** What the commands that touch the most take, a frame, and the part of a save that holds up the event loop. */
function workProcessorTimes(city: SimulatedCity): Record<string, unknown> {
  const apply = (command: Command) => processorTimes(COMMAND_ROUNDS, () => city.apply(command));
  let grids = 0;
  const clusters = { includePatchy: true, fillUnzoned: true, preferGrowableZone: true, gridSize: 80 };
  return {
    "repair-zones-to-growables": apply({ type: "repair-zones-to-growables", dryRun: false }),
    "repair-zone-clusters": apply({
      type: "repair-zone-clusters",
      dryRun: false,
      ...clusters,
      minMinorityCells: 3,
      minUnzonedCells: 6,
    }),
    frame: processorTimes(FRAMES, () => tick(city.world)),
    "capture for a save": processorTimes(COMMAND_ROUNDS, () => captureCity(city.world)),
    "capture as a picture, first piece": processorTimes(COMMAND_ROUNDS, () => paint(city, VIEW, null).next()),
    "build-grid of 400 blocks": processorTimes(COMMAND_ROUNDS, () => city.apply(gridAt(++grids))),
  };
}

const VIEW = { center: { x: 0, z: 0 }, sizeMeters: 9_000, pixels: 1024 };

/** On land that is still free. */
function gridAt(index: number): BuildGrid {
  const shape = { columns: 20, rows: 20, spacing: 64, rotationDegrees: 0, snapDistance: 2 };
  const origin = { x: -8_000 + 1_400 * index, z: 3_000 };
  return { type: "build-grid", dryRun: false, prefab: "Basic Road", name: "", origin, ...shape };
}

function processorTimes(rounds: number, work: () => unknown) {
  const milliseconds = Array.from({ length: rounds }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return quantiles(milliseconds);
}

async function withServer<T>(save: string, directory: string, work: (url: string) => Promise<T>): Promise<T> {
  const cli = join(import.meta.dirname, "../dist/cli.js");
  const args = [cli, "city", "--load", save, "--port", "0"];
  const env = { ...process.env, CITY_SAVES_DIR: directory };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^city on (\S+)$/.exec(line)?.[1];
      if (url !== undefined) return await work(url);
    }
    throw new Error("the server ended before it served");
  } finally {
    child.kill();
  }
}

function quantiles(milliseconds: readonly number[]) {
  const sorted = [...milliseconds].sort((a, b) => a - b);
  const quantile = (q: number) => round(sorted[Math.ceil(q * sorted.length) - 1] as number);
  const mean = round(milliseconds.reduce((sum, each) => sum + each, 0) / milliseconds.length);
  return { mean, p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const large = largeCity();
advance(large, WEEKS_TO_SETTLE * FRAMES_PER_WEEK);
const growables = large.world.buildings.all().filter(({ prefab }) => prefab.growable).length;
console.log(`${large.citizenCount} citizens, ${growables} growables, ${large.segments().length} segments`);
console.log("\nOver HTTP at speed 3, milliseconds");
console.table(await serverTimes(large));
console.log("\nIn this process, processor milliseconds");
console.table(workProcessorTimes(large));
console.table(readProcessorTimes(large));
console.log("\nDetectors, milliseconds");
console.table({ "large city": detectorTimes(large) });
for (const side of GRID_SIDES) {
  const city = newCity("empty");
  layLattice(city, -4000, -4000, side, side);
  console.table({ [`${city.segments().length} segments`]: detectorTimes(city) });
}
