/**
 * Restores a city from a save of this or an older version, and recomputes derived data. Creates the fields of a
 * record in the same order as new records have, because V8 is several times as fast if all records share a hidden
 * class.
 */
import type { z } from "zod";
import { BLOCK_COLUMNS, type Position } from "../../geometry.js";
import { commonZoneOf } from "../../zone-tally.js";
import { findBuildingPrefab, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab } from "../catalogue/network-prefabs.js";
import { newBuildingRecord } from "../fabric/buildings.js";
import { updateAccess } from "../fabric/reach.js";
import { CityStatistics, Ledger, START_MONEY, TaxTable } from "../state/economy.js";
import {
  type Building,
  type NetNode,
  type NetSegment,
  newTraffic,
  type RoadTraffic,
  type ZoneBlock,
} from "../state/entities.js";
import { Random } from "../state/random.js";
import { World } from "../state/world.js";
import {
  base64,
  copyPlainFields,
  type PackedNumbers,
  packFields,
  type SavedPoint,
  type Snapshot,
} from "./capture.js";
import {
  BLOCK,
  BUILDING,
  BUILDING_NUMBERS,
  CITIZEN_NUMBERS,
  CITY,
  checked,
  HOUSEHOLD,
  inRange,
  LEDGER_1,
  NODE,
  type Range,
  SEGMENT,
  TRAFFIC_RANGES,
} from "./content.js";
import { faultsOf } from "./integrity.js";

/** Version of the save format. Saves of older versions can be loaded, newer ones are refused. */
export const SNAPSHOT_VERSION = 4;

/**
 * Builds the city of a snapshot in steps. Checks each value before anything is built from it.
 * @throws Error if a value is wrong or an invariant is broken
 */
export function* restoreInPieces(snapshot: Migrated): Generator<void, World> {
  const city = checked(CITY, snapshot, "");
  const world = new World(city.seed);
  world.cityId = city.cityId ?? null;
  for (const area of city.areas ?? []) world.areas.add(area);
  for (const [key, reply] of city.replies ?? []) world.replies.set(key, reply);
  Object.assign(world, copyPlainFields(city));
  world.random = new Random(Uint32Array.from(city.random));
  Object.assign(world.demand, city.demand);
  world.taxes = new TaxTable(Uint8Array.from(city.taxRates));
  world.ledger = loadLedger(city.ledger);
  world.statistics.samples.push(...city.statistics.samples);
  Object.assign(world.statistics.week, city.statistics.week);
  world.utilities = city.utilities;
  world.board.messages = city.messages;
  world.board.quietUntil = new Map(city.quietUntil);
  yield;
  for (const node of rows(snapshot, "nodes", NODE)) {
    world.nodes.put(loadNode(node));
    yield;
  }
  const traffic = snapshot.traffic === null ? null : unpackTraffic(snapshot.traffic);
  for (const segment of rows(snapshot, "segments", SEGMENT)) {
    world.segments.put(loadSegment(world, segment, traffic ? taken(traffic, "traffic") : newTraffic()));
    yield;
  }
  if (traffic) requireEnd(traffic, "traffic");
  for (const block of rows(snapshot, "blocks", BLOCK)) {
    world.blocks.put(loadBlock(block));
    yield;
  }
  const numbers = unpack(snapshot.buildingNumbers, "buildingNumbers", BUILDING_NUMBERS);
  const lots = new Map<number, number>();
  for (const saved of rows(snapshot, "buildings", BUILDING)) {
    const building = loadBuilding(saved, taken(numbers, "buildingNumbers"));
    keepLotsApart(building, lots);
    world.putBuilding(building);
    yield;
  }
  requireEnd(numbers, "buildingNumbers");
  for (const [id, homeId, wealth, memberIds] of rows(snapshot, "households", HOUSEHOLD)) {
    world.households.put({ id, homeId, wealth, memberIds });
    yield;
  }
  for (const { id, householdId, bornFrame, education, workId } of unpack(
    snapshot.citizens,
    "citizens",
    CITIZEN_NUMBERS,
  )) {
    world.citizens.put({ id, householdId, bornFrame, education, workId });
    yield;
  }
  for (const fault of faultsOf(world)) {
    if (fault !== undefined) throw new Error(fault);
    yield;
  }
  for (const building of world.buildings.all()) {
    updateAccess(world, building);
    yield;
  }
  return world;
}

/** Checks the rows of a list one by one. */
function* rows<S extends z.ZodType>(
  snapshot: Migrated,
  name: keyof Migrated,
  row: S,
): Generator<z.output<S>> {
  const list: unknown = snapshot[name];
  if (!Array.isArray(list)) throw new Error(`the list ${name} is missing`);
  for (let i = 0; i < list.length; i++) yield checked(row, list[i], `${name}[${i}]`);
}

/** The next record. @throws Error if there is none */
function taken<T>(records: Generator<T>, name: string): T {
  const { done, value } = records.next();
  if (done) throw new Error(`${name} has too few records`);
  return value;
}

function requireEnd(records: Generator<unknown>, name: string): void {
  if (!records.next().done) throw new Error(`${name} has too many records`);
}

function loadLedger({ startCents, totals, week, history, loans }: z.output<typeof CITY>["ledger"]): Ledger {
  const ledger = new Ledger(startCents);
  Object.assign(ledger.totals, totals);
  Object.assign(ledger.week, week);
  ledger.history.push(...history);
  ledger.loans.push(...loans);
  return ledger;
}

function loadNode({ id, prefab, at, outside, problems, segments }: z.output<typeof NODE>): NetNode {
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    position: loadPoint(at),
    outside,
    problems,
    segmentIds: segments,
  };
}

function loadSegment(world: World, saved: z.output<typeof SEGMENT>, traffic: RoadTraffic): NetSegment {
  const { id, prefab, name, namedByBuilder, ends, problems, blocks } = saved;
  const [startNodeId, endNodeId] = ends;
  const endAt = (nodeId: number) => {
    const node = world.nodes.get(nodeId);
    if (!node) throw new Error(`segment ${id} ends at node ${nodeId}, which does not exist`);
    return node.position;
  };
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    name,
    namedByBuilder,
    startNodeId,
    endNodeId,
    start: endAt(startNodeId),
    end: endAt(endNodeId),
    problems,
    blockIds: blocks,
    traffic,
  };
}

/** Traffic of one segment after another. */
function* unpackTraffic(packed: PackedNumbers): Generator<RoadTraffic> {
  const numbers = new NumberReader(packed, "traffic");
  const { vehicles, seconds, providerId, shops, shopId } = TRAFFIC_RANGES;
  const take = (range: Range) => inRange(numbers.next(), range, "traffic");
  while (!numbers.isAtEnd) {
    const [volume, counted, edgeSeconds] = [take(vehicles), take(vehicles), take(seconds)];
    const providerIds = ROAD_COVERAGES.map(() => take(providerId));
    const providerSeconds = ROAD_COVERAGES.map(() => take(seconds));
    const shopIds = Array.from({ length: take(shops) }, () => take(shopId));
    yield { volume, counted, edgeSeconds, providerIds, providerSeconds, shopIds };
  }
}

function loadBlock({ id, segment, at, angle, age, cells: digits }: z.output<typeof BLOCK>): ZoneBlock {
  const cells = Uint8Array.from(digits, Number);
  return {
    id,
    segmentId: segment,
    position: loadPoint(at),
    rows: cells.length / BLOCK_COLUMNS,
    cells,
    angleRadians: angle,
    age,
    commonZone: commonZoneOf(cells),
    usable: null,
    occupied: null,
  };
}

function loadBuilding(
  saved: z.output<typeof BUILDING>,
  numbers: Record<keyof typeof BUILDING_NUMBERS, number>,
): Building {
  const {
    prefab,
    at,
    problems,
    problemSince,
    switchedOff,
    closedForDebt = false,
    supply,
    households,
    workers,
  } = saved;
  const building = newBuildingRecord(numbers.id, known(findBuildingPrefab, prefab), loadPoint(at));
  return Object.assign(building, numbers, {
    problems,
    problemSince,
    switchedOff,
    closedForDebt,
    supply,
    householdIds: households,
    workerIds: workers,
  });
}

/**
 * Leaves cells that two lots share to the first one: in older versions lots grew over others beside a narrowed road.
 * @param lots cells of each block in the lots so far
 */
function keepLotsApart(building: Building, lots: Map<number, number>): void {
  if (building.blockId === 0) return;
  const others = lots.get(building.blockId) ?? 0;
  building.lotMask &= ~others;
  lots.set(building.blockId, others | building.lotMask);
}

/** Unpacks one record after another. @throws Error naming the field whose value is not in its range */
function* unpack<K extends string>(
  packed: PackedNumbers,
  name: string,
  ranges: Readonly<Record<K, { readonly range: Range }>>,
): Generator<Record<K, number>> {
  const fields = Object.entries(ranges) as [K, { readonly range: Range }][];
  const numbers = new NumberReader(packed, name);
  while (!numbers.isAtEnd) {
    const record = {} as Record<K, number>;
    for (const [field, { range }] of fields) record[field] = inRange(numbers.next(), range, field);
    yield record;
  }
}

/** Length of the base64 text of a whole number of doubles. */
const TEXT_PIECE = 32 * 1024;

/** Decodes packed numbers piece by piece. */
class NumberReader {
  readonly #packed: PackedNumbers;
  readonly #name: string;
  #from = 0;
  #bytes = Buffer.alloc(0);
  #at = 0;

  /** @param name name of the list in error messages */
  constructor(packed: PackedNumbers, name: string) {
    if (typeof packed !== "string") throw new Error(`the numbers of ${name} are missing`);
    this.#packed = packed;
    this.#name = name;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length && this.#from >= this.#packed.length;
  }

  /** @throws Error at the end, or if the text is not base64 of doubles */
  next(): number {
    if (this.#at === this.#bytes.length) this.#decode();
    this.#at += 8;
    return compact(this.#bytes.readDoubleLE(this.#at - 8));
  }

  #decode(): void {
    const text = this.#packed.slice(this.#from, this.#from + TEXT_PIECE);
    this.#from += TEXT_PIECE;
    this.#bytes = Buffer.from(text, "base64");
    this.#at = 0;
    const { length } = this.#bytes;
    if (length === 0 || length % 8 !== 0 || length !== Buffer.byteLength(text, "base64"))
      throw new Error(`the numbers of ${this.#name} are damaged`);
  }
}

/**
 * Converts numbers to small integers where possible: V8 keeps values read from a Float64Array as heap doubles,
 * which are several times slower.
 */
function compact(value: number): number {
  const integer = value | 0;
  return Object.is(integer, value) ? integer : value;
}

function loadPoint([x, y, z]: SavedPoint): Position {
  return { x, y, z };
}

function known<T>(find: (name: string) => T | undefined, name: string): T {
  const prefab = find(name);
  if (!prefab) throw new Error(`it uses the prefab "${name}", which this version does not have`);
  return prefab;
}

type BuildingNumbers = Partial<Record<keyof typeof BUILDING_NUMBERS, number>>;

/** Building fields that each version introduced, with the values that they get in older saves. */
const NUMBERS_SINCE: readonly (readonly [version: number, BuildingNumbers])[] = [
  [2, { happiness: 60 }],
  [3, { commute: 0, want: 0, stored: 0, fuel: 1 }],
  [4, { waitSeconds: 0 }],
];

/** Content of a save in the current version. Cities of older saves have no traffic. */
type Migrated = Omit<Snapshot, "traffic"> & { readonly traffic: PackedNumbers | null };
/** Saves of version 2 have no traffic. */
type Snapshot2 = Omit<Snapshot, "traffic" | "trafficCursor">;
/** Saves of version 1 have three sums (taxes, construction, upkeep) instead of a ledger. */
type Snapshot1 = Omit<Snapshot2, "ledger" | "statistics" | "utilities"> & {
  readonly ledgerCents: { readonly taxes: number; readonly construction: number; readonly upkeep: number };
};

/**
 * Migrates saved data step by step to the current version.
 * @param version version of `data`
 */
export function migrate(data: unknown, version: number): Migrated {
  const with2 = version === 1 ? fromVersion1(data as Snapshot1) : (data as Snapshot2);
  // Without saved traffic all volumes start at zero, as in a new city.
  const with3 = version <= 2 ? { ...with2, traffic: null, trafficCursor: 0 } : (data as Snapshot);
  return { ...with3, buildingNumbers: withNewNumbers(with3.buildingNumbers, version) };
}

/** Money had no effect in version 1, so a balance below the initial balance becomes the initial balance. */
function fromVersion1({ ledgerCents, ...same }: Snapshot1): Snapshot2 {
  const { taxes, construction, upkeep } = checked(LEDGER_1, ledgerCents, "ledgerCents");
  const startCents = Math.max(START_MONEY * 100 + taxes - construction - upkeep, START_MONEY * 100);
  return {
    ...same,
    ledger: new Ledger(startCents),
    statistics: new CityStatistics(),
    utilities: [],
  };
}

/** Adds the building fields that versions after `version` introduced. */
function withNewNumbers(packed: PackedNumbers, version: number): PackedNumbers {
  const newer = NUMBERS_SINCE.filter(([since]) => since > version).map(([, numbers]) => numbers);
  if (newer.length === 0) return packed;
  const added: BuildingNumbers = Object.assign({}, ...newer);
  const known = Object.entries(BUILDING_NUMBERS).filter(([name]) => !(name in added));
  const rows = [...unpack(packed, "buildingNumbers", Object.fromEntries(known))].map((row) => ({
    ...row,
    ...added,
  }));
  const readers = Object.keys(BUILDING_NUMBERS).map((name) => (row: BuildingNumbers) => {
    return row[name as keyof BuildingNumbers] as number;
  });
  return base64(packFields(rows, readers));
}
