/**
 * The whole state of a city as plain JSON data, and back. What can be worked out from the rest (indexes, reach of
 * roads and pipes, usable cells) is left out and worked out anew. Records are loaded with their fields in the order in
 * which new ones have them: the engine then takes both for one kind, which is several times as fast.
 */
import type { Position } from "../../game.js";
import { findBuildingPrefab, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab } from "../catalogue/network-prefabs.js";
import { blankBuilding } from "../fabric/buildings.js";
import { attach } from "../fabric/reach.js";
import { Ledger, TaxTable } from "../state/economy.js";
import {
  type Citizen,
  newTraffic,
  type RoadTraffic,
  type SimBuilding,
  type SimNode,
  type SimSegment,
  type SimZoneBlock,
} from "../state/entities.js";
import { Random } from "../state/random.js";
import { World } from "../state/world.js";
import { findFaults } from "./integrity.js";

/** Rises when the shape of the data changes. Older versions are read (migration.ts), newer ones refused. */
export const SNAPSHOT_VERSION = 3;

/** The plain numbers of a building, in the order of a saved row. */
export const BUILDING_NUMBERS = [
  "id",
  "angleDegrees",
  "flags",
  "builtFrame",
  "declineFrame",
  "blockId",
  "lotMask",
  "homes",
  "jobs",
  "visitorPlaces",
  "visitors",
  "goods",
  "garbage",
  "bodies",
  "crime",
  "health",
  "landValue",
  "progress",
  "taxUnrest",
  "burning",
  "load",
  "lastLoad",
  "happiness",
  "commute",
  "want",
  "stored",
  "fuel",
] as const satisfies readonly (keyof SimBuilding)[];

export const CITIZEN_NUMBERS = [
  "id",
  "householdId",
  "bornFrame",
  "education",
  "workId",
] as const satisfies (keyof Citizen)[];

type SavedPoint = [number, number, number];

/** Doubles in base64: the bulk of a city, which as decimal text would take several times as long to write. */
type PackedNumbers = string;

/** The identity and the areas are absent from older saves. */
export type Snapshot = ReturnType<typeof takeSnapshot>;

export function takeSnapshot(world: World) {
  const identity: { cityId?: string } = world.cityId === null ? {} : { cityId: world.cityId };
  const land: { areas?: number[] } = { areas: [...world.areas] };
  return {
    ...identity,
    ...land,
    seed: world.seed,
    ...plainFieldsOf(world),
    random: [...world.random.state],
    demand: { ...world.demand },
    taxRates: [...world.taxes.rates],
    ledger: saveLedger(world.ledger),
    statistics: { samples: [...world.statistics.samples], week: { ...world.statistics.week } },
    utilities: world.utilities,
    messages: [...world.board.messages],
    quietUntil: [...world.board.quietUntil],
    nodes: world.nodes.all().map(saveNode),
    segments: world.segments.all().map(saveSegment),
    /** What drives on them, in the order of `segments`. */
    traffic: saveTraffic(world.segments.all()),
    blocks: world.blocks.all().map(saveBlock),
    buildings: world.buildings.all().map(saveBuilding),
    /** Rows of BUILDING_NUMBERS, in the order of `buildings`. */
    buildingNumbers: pack(world.buildings.all(), BUILDING_NUMBERS),
    households: world.households
      .all()
      .map(({ id, homeId, wealth, memberIds }) => [id, homeId, wealth, [...memberIds]] as const),
    /** Rows of CITIZEN_NUMBERS, in the order of their ids. */
    citizens: pack(world.citizens.all(), CITIZEN_NUMBERS),
  };
}

/**
 * Builds the city a snapshot describes.
 * @throws Error when it does not describe a sound city
 */
export function restoreSnapshot(snapshot: Snapshot): World {
  const world = new World(snapshot.seed);
  world.cityId = snapshot.cityId ?? null;
  for (const area of snapshot.areas ?? []) world.areas.add(area);
  Object.assign(world, plainFieldsOf(snapshot));
  world.random = new Random(Uint32Array.from(snapshot.random));
  Object.assign(world.demand, snapshot.demand);
  world.taxes = new TaxTable(Uint8Array.from(snapshot.taxRates));
  world.ledger = loadLedger(snapshot.ledger);
  world.statistics.samples.push(...snapshot.statistics.samples);
  Object.assign(world.statistics.week, snapshot.statistics.week);
  world.utilities = snapshot.utilities;
  world.board.messages = [...snapshot.messages];
  world.board.quietUntil = new Map(snapshot.quietUntil);
  for (const node of snapshot.nodes) world.nodes.put(loadNode(node));
  const traffic = loadTraffic(snapshot.traffic);
  snapshot.segments.forEach((segment, i) => {
    world.segments.put(loadSegment(world, segment, traffic[i] ?? newTraffic()));
  });
  for (const block of snapshot.blocks) world.blocks.put(loadBlock(block));
  const numbers = unpack(snapshot.buildingNumbers, BUILDING_NUMBERS);
  snapshot.buildings.forEach((building, i) => {
    world.putBuilding(loadBuilding(building, numbers[i] as (typeof numbers)[number]));
  });
  for (const [id, homeId, wealth, members] of snapshot.households) {
    world.households.put({ id, homeId, wealth, memberIds: [...members] });
  }
  for (const { id, householdId, bornFrame, education, workId } of unpack(
    snapshot.citizens,
    CITIZEN_NUMBERS,
  )) {
    world.citizens.put({ id, householdId, bornFrame, education, workId });
  }
  const [fault] = findFaults(world);
  if (fault) throw new Error(fault);
  for (const building of world.buildings.all()) attach(world, building);
  return world;
}

/** What is saved as it is. */
function plainFieldsOf(state: PlainFields): PlainFields {
  const { frame, paused, selectedSpeed, buildIndex, milestone, wares, blockedAssetEnabled } = state;
  const { trafficCursor } = state;
  return { frame, paused, selectedSpeed, buildIndex, milestone, wares, blockedAssetEnabled, trafficCursor };
}

type PlainFields = Pick<
  World,
  | "frame"
  | "paused"
  | "selectedSpeed"
  | "buildIndex"
  | "milestone"
  | "wares"
  | "blockedAssetEnabled"
  | "trafficCursor"
>;

function saveLedger({ startCents, totals, week, history, loans }: Ledger) {
  return structuredClone({ startCents, totals, week, history, loans });
}

function loadLedger({ startCents, totals, week, history, loans }: ReturnType<typeof saveLedger>): Ledger {
  const ledger = new Ledger(startCents);
  Object.assign(ledger.totals, totals);
  Object.assign(ledger.week, week);
  ledger.history.push(...history);
  ledger.loans.push(...structuredClone(loans));
  return ledger;
}

function saveNode({ id, prefab, position, outside, problems, segmentIds }: SimNode) {
  return { id, prefab: prefab.name, at: savePoint(position), outside, problems, segments: [...segmentIds] };
}

function loadNode({ id, prefab, at, outside, problems, segments }: ReturnType<typeof saveNode>): SimNode {
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    position: loadPoint(at),
    outside,
    problems,
    segmentIds: [...segments],
  };
}

function saveSegment(segment: SimSegment) {
  const { id, prefab, name, namedByBuilder, startNodeId, endNodeId, problems, blockIds } = segment;
  const ends = [startNodeId, endNodeId] as const;
  return { id, prefab: prefab.name, name, namedByBuilder, ends, problems, blocks: [...blockIds] };
}

function loadSegment(world: World, saved: ReturnType<typeof saveSegment>, traffic: RoadTraffic): SimSegment {
  const { id, prefab, name, namedByBuilder, ends, problems, blocks } = saved;
  const [startNodeId, endNodeId] = ends;
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    name,
    namedByBuilder,
    startNodeId,
    endNodeId,
    start: world.nodes.at(startNodeId).position,
    end: world.nodes.at(endNodeId).position,
    problems,
    blockIds: [...blocks],
    traffic,
  };
}

function saveTraffic(segments: readonly SimSegment[]): PackedNumbers {
  const rows = segments.map(({ traffic }) => {
    const { volume, counted, edgeSeconds, providerIds, providerSeconds, shopIds } = traffic;
    return [volume, counted, edgeSeconds, ...providerIds, ...providerSeconds, shopIds.length, ...shopIds];
  });
  return Buffer.from(Float64Array.from(rows.flat()).buffer).toString("base64");
}

function loadTraffic(packed: PackedNumbers): RoadTraffic[] {
  const bytes = Buffer.from(packed, "base64");
  const roads: RoadTraffic[] = [];
  let at = 0;
  const take = (count: number) =>
    Array.from({ length: count }, () => {
      at += 8;
      return compact(bytes.readDoubleLE(at - 8));
    });
  while (at < bytes.length) {
    const [volume = 0, counted = 0, edgeSeconds = 0] = take(3);
    const providerIds = take(ROAD_COVERAGES.length);
    const providerSeconds = take(ROAD_COVERAGES.length);
    const shopIds = take(take(1)[0] as number);
    roads.push({ volume, counted, edgeSeconds, providerIds, providerSeconds, shopIds });
  }
  return roads;
}

/** The cells become one digit each. */
function saveBlock({ id, segmentId, position, angleRadians, age, cells }: SimZoneBlock) {
  return { id, segment: segmentId, at: savePoint(position), angle: angleRadians, age, cells: cells.join("") };
}

function loadBlock({ id, segment, at, angle, age, cells }: ReturnType<typeof saveBlock>): SimZoneBlock {
  return {
    id,
    segmentId: segment,
    position: loadPoint(at),
    rows: cells.length / 4,
    cells: Uint8Array.from(cells, Number),
    angleRadians: angle,
    age,
    usable: null,
    occupied: null,
  };
}

function saveBuilding(building: SimBuilding) {
  const { prefab, position, problems, problemSince, switchedOff, supply, householdIds, workerIds } = building;
  return {
    prefab: prefab.name,
    at: savePoint(position),
    problems,
    problemSince,
    switchedOff,
    supply: { ...supply },
    households: [...householdIds],
    workers: [...workerIds],
  };
}

function loadBuilding(
  { prefab, at, households, workers, ...same }: ReturnType<typeof saveBuilding>,
  numbers: Record<(typeof BUILDING_NUMBERS)[number], number>,
): SimBuilding {
  const building = blankBuilding(numbers.id, known(findBuildingPrefab, prefab), loadPoint(at));
  return Object.assign(building, same, numbers, {
    problemSince: [...same.problemSince],
    supply: { ...same.supply },
    householdIds: [...households],
    workerIds: [...workers],
  });
}

export function pack<K extends string>(
  rows: readonly Readonly<Record<K, number>>[],
  fields: readonly K[],
): PackedNumbers {
  const values = new Float64Array(rows.length * fields.length);
  let at = 0;
  for (const row of rows) for (const field of fields) values[at++] = row[field];
  return Buffer.from(values.buffer).toString("base64");
}

export function unpack<K extends string>(packed: PackedNumbers, fields: readonly K[]): Record<K, number>[] {
  const bytes = Buffer.from(packed, "base64");
  const count = bytes.length / (8 * fields.length);
  return Array.from({ length: count }, (_, row) => {
    const record = {} as Record<K, number>;
    fields.forEach((field, i) => {
      record[field] = compact(bytes.readDoubleLE(8 * (row * fields.length + i)));
    });
    return record;
  });
}

/** What is read from bytes is kept as a double on the heap, however small: as an integer it is several times as fast. */
function compact(value: number): number {
  const integer = value | 0;
  return Object.is(integer, value) ? integer : value;
}

function savePoint({ x, y, z }: Position): SavedPoint {
  return [x, y, z];
}

function loadPoint([x, y, z]: SavedPoint): Position {
  return { x, y, z };
}

function known<T>(find: (name: string) => T | undefined, name: string): T {
  const prefab = find(name);
  if (!prefab) throw new Error(`it uses the prefab "${name}", which this version does not have`);
  return prefab;
}
