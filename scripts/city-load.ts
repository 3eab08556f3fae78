/**
 * How fast the city bridge answers: npm run build && node --import tsx scripts/city-load.ts
 *
 * Reads: a city of 5,000 segments and 10,000 buildings runs at speed 3 in a process of its own; every read endpoint is
 * asked over HTTP, one request after another. Processor: the same reads in this process, by the processor time they take,
 * which other load on the machine disturbs less. Detectors: the six alone, on growing street grids, in this process.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findBuildingOverlaps } from "../src/city/anomalies/building-overlaps.js";
import { RoadIndex } from "../src/city/anomalies/road-index.js";
import { findDeadEnds, findRoadPairs, findShortStubs } from "../src/city/anomalies/road-network.js";
import { findTerrainMismatches } from "../src/city/anomalies/road-terrain.js";
import { findMottledZones } from "../src/city/anomalies/zone-mottling.js";
import { READ_ROUTES } from "../src/city/embedded-routes.js";
import type { City, Game } from "../src/city/game.js";
import { SaveFiles } from "../src/city/simulation/saves/save-files.js";
import { type JsonObject, writeJson } from "../src/city/wire/answers.js";
import { Query } from "../src/city/wire/requests.js";
import { largeCity, layLattice, newCity } from "../test/city/simulation/towns.js";

const REQUESTS_PER_ENDPOINT = 200;
const PROCESSOR_ROUNDS = 60;
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

async function readTimes(city: ReturnType<typeof largeCity>): Promise<Record<string, unknown>> {
  const directory = await mkdtemp(join(tmpdir(), "carillon-load-"));
  try {
    const files = new SaveFiles(directory, (error) => console.error(error));
    const { path } = files.begin(city.world, "Large");
    await files.settled();
    return await withServer(path, directory, measureReads);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function measureReads(url: string): Promise<Record<string, unknown>> {
  await fetch(`${url}/commands/set-simulation-speed`, { method: "POST", body: '{"speed":3}' });
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
function processorTimes(city: City): Record<string, unknown> {
  const game: Game = {
    city,
    listSaves: async () => ({ directory: "", saves: [] }),
    onCityChanged: () => () => {},
  };
  const routes = READ_ROUTES.filter(({ path }) => path !== "/state/saves");
  const rows = routes.map(({ path, read }) => {
    const milliseconds = Array.from({ length: PROCESSOR_ROUNDS }, () => {
      const before = process.cpuUsage();
      writeJson(read({ game, city, query: new Query(`${path}?limit=5000`) }) as JsonObject);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    });
    return [path, quantiles(milliseconds)] as const;
  });
  return Object.fromEntries(rows);
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
  return { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const large = largeCity();
console.log(`${large.segments().length} segments, ${large.buildings().length} buildings`);
console.log("\nReads over HTTP at speed 3, milliseconds");
console.table(await readTimes(large));
console.log("\nReads in this process, processor milliseconds");
console.table(processorTimes(large));
console.log("\nDetectors, milliseconds");
console.table({ "large city": detectorTimes(large) });
for (const side of GRID_SIDES) {
  const city = newCity("empty");
  layLattice(city, -4000, -4000, side, side);
  console.table({ [`${city.segments().length} segments`]: detectorTimes(city) });
}
