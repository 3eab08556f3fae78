/**
 * Converts the state of a city to JSON. First copies the state, then writes the copies, in many turns of the event
 * loop. Leaves out derived data (indexes, access to roads and pipes, usable cells).
 */

import { setImmediate } from "node:timers/promises";
import type { Position } from "../../geometry.js";
import { inOneGo } from "../../steps.js";
import { ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import type { Ledger } from "../state/economy.js";
import type { Building, Household, NetNode, NetSegment, ZoneBlock } from "../state/entities.js";
import type { World } from "../state/world.js";
import { BUILDING_NUMBERS, CITIZEN_NUMBERS, type NumberFields } from "./content.js";

export type SavedPoint = [number, number, number];

/** Base64 of doubles. Decimal text would take several times as long to write. */
export type PackedNumbers = string;

/** List of rows that are built only when they are written. Until then it holds a copy of their data. */
class Rows<T> {
  readonly length: number;
  readonly #make: (index: number) => T;

  constructor(length: number, make: (index: number) => T) {
    this.length = length;
    this.#make = make;
  }

  slice(from: number, to: number): T[] {
    const count = Math.max(Math.min(to, this.length) - from, 0);
    return Array.from({ length: count }, (_, i) => this.#make(from + i));
  }
}

/** Immutable copy of a city at one moment. */
export type Capture = ReturnType<typeof capturePieces> extends Generator<unknown, infer Copy> ? Copy : never;

/** Content of a save. Saves of older versions have no `cityId`, `areas` or `replies`. */
export type Snapshot = { [K in keyof Capture]: Written<Capture[K]> };
type Written<T> = T extends Rows<infer Row> ? Row[] : T extends Float64Array ? PackedNumbers : T;

/**
 * Captures the current state over several turns of the event loop, while the clock is stopped. If a command
 * arrives, the capture is finished before the command changes the city (see `World.capture`).
 */
export async function captureInSteps(world: World): Promise<Capture> {
  while (world.capture) await world.capture.done;
  const pieces = capturePieces(world);
  let step = pieces.next();
  const finish = () => {
    while (!step.done) step = pieces.next();
  };
  const work = async () => {
    while (!step.done) {
      await setImmediate();
      if (!step.done) step = pieces.next();
    }
    return step.value;
  };
  const done = work().finally(() => {
    world.capture = null;
  });
  world.capture = { finish, done };
  return done;
}

/** Copies what the city mutates, not what it replaces. Yields after every few milliseconds. */
export function* capturePieces(world: World) {
  const identity: { cityId?: string } = world.cityId === null ? {} : { cityId: world.cityId };
  const land: { areas?: number[] } = { areas: [...world.areas] };
  const commands: { replies?: (readonly [key: string, reply: object])[] } = {
    replies: [...world.replies],
  };
  const [segments, buildings] = [world.segments.all(), world.buildings.all()];
  return {
    ...identity,
    ...land,
    ...commands,
    seed: world.seed,
    ...copyPlainFields(world),
    random: [...world.random.state],
    demand: { ...world.demand },
    taxRates: [...world.taxes.rates],
    ledger: saveLedger(world.ledger),
    statistics: { samples: [...world.statistics.samples], week: { ...world.statistics.week } },
    utilities: world.utilities,
    messages: [...world.board.messages],
    quietUntil: [...world.board.quietUntil],
    nodes: yield* mapInPieces(world.nodes.all(), saveNode),
    segments: yield* mapInPieces(segments, saveSegment),
    /** Traffic of each segment, in the order of `segments`. */
    traffic: yield* captureTraffic(segments),
    blocks: yield* captureBlocks(world.blocks.all()),
    buildings: yield* captureBuildings(buildings),
    /** BUILDING_NUMBERS of each building, in the order of `buildings`. */
    buildingNumbers: yield* packInPieces(buildings, readersOf(BUILDING_NUMBERS)),
    households: yield* captureHouseholds(world.households.all()),
    /** CITIZEN_NUMBERS of each citizen, in ascending order of the ids. */
    citizens: yield* packInPieces(world.citizens.all(), readersOf(CITIZEN_NUMBERS)),
  };
}

const RECORDS_PER_PIECE = 4000;

/** Visits all records. Yields after every RECORDS_PER_PIECE of them. */
function* inPieces<T>(records: readonly T[], visit: (record: T, index: number) => void): Generator<void> {
  for (let i = 0; i < records.length; i++) {
    visit(records[i] as T, i);
    if (i % RECORDS_PER_PIECE === RECORDS_PER_PIECE - 1) yield;
  }
  yield;
}

function* mapInPieces<T, R>(records: readonly T[], map: (record: T) => R): Generator<void, R[]> {
  const mapped: R[] = [];
  yield* inPieces(records, (record) => {
    mapped.push(map(record));
  });
  return mapped;
}

const ROWS_PER_PIECE = 1000;

/** Yields the JSON text of a captured city in pieces. Each piece takes some milliseconds to write. */
export function* writeCapture(capture: Capture): Generator<string> {
  let isFirst = true;
  for (const [name, value] of Object.entries(capture)) {
    yield `${isFirst ? "{" : ","}${JSON.stringify(name)}:`;
    yield* piecesOf(value);
    isFirst = false;
  }
  yield "}";
}

function* piecesOf(value: Capture[keyof Capture]): Generator<string> {
  if (value instanceof Float64Array) yield* writeNumbers(value);
  else if (value instanceof Rows || Array.isArray(value)) {
    for (let at = 0; at === 0 || at < value.length; at += ROWS_PER_PIECE) {
      const rows = JSON.stringify(value.slice(at, at + ROWS_PER_PIECE));
      yield (at === 0 ? "[" : ",") + rows.slice(1, -1);
    }
    yield "]";
  } else yield JSON.stringify(value);
}

/** A piece's byte count is a multiple of three, so that base64 texts can be concatenated. */
const NUMBERS_PER_PIECE = 3 * 2 ** 14;

function* writeNumbers(values: Float64Array): Generator<string> {
  yield '"';
  for (let at = 0; at < values.length; at += NUMBERS_PER_PIECE) {
    yield base64(values.subarray(at, at + NUMBERS_PER_PIECE));
  }
  yield '"';
}

/** Fields of the world that are saved unchanged. */
const PLAIN_FIELDS = [
  "frame",
  "paused",
  "selectedSpeed",
  "buildIndex",
  "milestone",
  "wares",
  "blockedAssetEnabled",
  "trafficCursor",
] as const satisfies readonly (keyof World)[];
type PlainFields = Pick<World, (typeof PLAIN_FIELDS)[number]>;

export function copyPlainFields(state: PlainFields): PlainFields {
  return Object.fromEntries(PLAIN_FIELDS.map((name) => [name, state[name]])) as unknown as PlainFields;
}

function saveLedger({ startCents, totals, week, history, loans }: Ledger) {
  return structuredClone({ startCents, totals, week, history, loans });
}

function saveNode({ id, prefab, position, outside, problems, segmentIds }: NetNode) {
  return { id, prefab: prefab.name, at: savePoint(position), outside, problems, segments: [...segmentIds] };
}

function saveSegment(segment: NetSegment) {
  const { id, prefab, name, namedByBuilder, startNodeId, endNodeId, problems, blockIds } = segment;
  const ends = [startNodeId, endNodeId] as const;
  return { id, prefab: prefab.name, name, namedByBuilder, ends, problems, blocks: [...blockIds] };
}

function* captureTraffic(segments: readonly NetSegment[]): Generator<void, Float64Array> {
  const shops = segments.reduce((sum, { traffic }) => sum + traffic.shopIds.length, 0);
  const values = new Float64Array(segments.length * (4 + 2 * ROAD_COVERAGES.length) + shops);
  let at = 0;
  const add = (numbers: readonly number[]) => {
    for (let i = 0; i < numbers.length; i++) values[at++] = numbers[i] as number;
  };
  yield* inPieces(segments, ({ traffic }) => {
    const { volume, counted, edgeSeconds, providerIds, providerSeconds, shopIds } = traffic;
    values[at++] = volume;
    values[at++] = counted;
    values[at++] = edgeSeconds;
    add(providerIds);
    add(providerSeconds);
    values[at++] = shopIds.length;
    add(shopIds);
  });
  return values;
}

/** Writes the cells of each block as text with one digit per cell. */
function* captureBlocks(blocks: readonly ZoneBlock[]) {
  const cellsOf = yield* captureLists(blocks, ({ cells }) => cells);
  return new Rows(blocks.length, (i) => {
    const { id, segmentId, position, angleRadians, age } = blocks[i] as ZoneBlock;
    const cells = cellsOf(i).join("");
    return { id, segment: segmentId, at: savePoint(position), angle: angleRadians, age, cells };
  });
}

function* captureBuildings(buildings: readonly Building[]) {
  const states = new Uint8Array(buildings.length);
  const replaced = yield* mapInPieces(buildings, ({ prefab, problems, problemSince }) => {
    return { prefab, problems, problemSince };
  });
  yield* inPieces(buildings, ({ switchedOff, closedForDebt, supply }, i) => {
    const { power, water, sewage, heat } = supply;
    states[i] =
      +switchedOff | (+power << 1) | (+water << 2) | (+sewage << 3) | (+heat << 4) | (+closedForDebt << 5);
  });
  const households = yield* captureLists(buildings, ({ householdIds }) => householdIds);
  const workers = yield* captureLists(buildings, ({ workerIds }) => workerIds);
  return new Rows(buildings.length, (i) => {
    const is = (bit: number) => ((states[i] as number) & (1 << bit)) !== 0;
    const { prefab, problems, problemSince } = replaced[i] as (typeof replaced)[number];
    return {
      prefab: prefab.name,
      at: savePoint((buildings[i] as Building).position),
      problems,
      problemSince: problemSince as readonly number[],
      switchedOff: is(0),
      ...(is(5) ? { closedForDebt: true } : {}),
      supply: { power: is(1), water: is(2), sewage: is(3), heat: is(4) },
      households: [...households(i)],
      workers: [...workers(i)],
    };
  });
}

function* captureHouseholds(households: readonly Household[]) {
  const members = yield* captureLists(households, ({ memberIds }) => memberIds);
  return new Rows(households.length, (i) => {
    const { id, homeId, wealth } = households[i] as Household;
    return [id, homeId, wealth, [...members(i)]] as const;
  });
}

/**
 * Copies the lists of all owners into one array. A hundred thousand small arrays would make garbage
 * collection slow.
 * @returns a function from an owner's index to the owner's copied list
 */
function* captureLists<T>(
  owners: readonly T[],
  listOf: (owner: T) => ArrayLike<number>,
): Generator<void, (index: number) => Int32Array> {
  const starts = new Int32Array(owners.length + 1);
  yield* inPieces(owners, (owner, i) => {
    starts[i + 1] = (starts[i] as number) + listOf(owner).length;
  });
  const all = new Int32Array(starts[owners.length] as number);
  let at = 0;
  yield* inPieces(owners, (owner) => {
    const list = listOf(owner);
    for (let i = 0; i < list.length; i++) all[at++] = list[i] as number;
  });
  return (index) => all.subarray(starts[index], starts[index + 1]);
}

function readersOf<T>(fields: NumberFields<T>): ((record: T) => number)[] {
  return Object.values(fields).map(({ read }) => read);
}

/** Numeric fields of records in one array: all of the first record, then those of the second. */
export function packFields<T>(
  records: readonly T[],
  readers: readonly ((record: T) => number)[],
): Float64Array {
  return inOneGo(packInPieces(records, readers));
}

function* packInPieces<T>(
  records: readonly T[],
  readers: readonly ((record: T) => number)[],
): Generator<void, Float64Array> {
  const values = new Float64Array(records.length * readers.length);
  let at = 0;
  yield* inPieces(records, (record) => {
    for (const read of readers) values[at++] = read(record);
  });
  return values;
}

export function base64(values: Float64Array): PackedNumbers {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("base64");
}

function savePoint({ x, y, z }: Position): SavedPoint {
  return [x, y, z];
}
