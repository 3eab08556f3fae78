/**
 * Restores a city from a save of this or an older version, and recomputes derived data. Creates the fields of a
 * record in the same order as new records have, because V8 is several times as fast if all records share a hidden
 * class.
 */
import type { Position } from "../../game.js";
import { BLOCK_COLUMNS } from "../../geometry.js";
import { commonZoneOf } from "../../zone-tally.js";
import { findBuildingPrefab, ROAD_COVERAGES } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab } from "../catalogue/network-prefabs.js";
import { newBuildingRecord } from "../fabric/buildings.js";
import { updateAccess } from "../fabric/reach.js";
import { CityStatistics, Ledger, START_MONEY, TaxTable } from "../state/economy.js";
import {
  newTraffic,
  type RoadTraffic,
  type SimBuilding,
  type SimNode,
  type SimSegment,
  type SimZoneBlock,
} from "../state/entities.js";
import { Random } from "../state/random.js";
import { World } from "../state/world.js";
import {
  BUILDING_NUMBER_FIELDS,
  base64,
  CITIZEN_NUMBER_FIELDS,
  copyPlainFields,
  type PackedNumbers,
  packFields,
  type SavedPoint,
  type Snapshot,
} from "./capture.js";
import { findFaults } from "./integrity.js";

/** Version of the save format. Saves of older versions can be loaded, newer ones are refused. */
export const SNAPSHOT_VERSION = 4;

/**
 * Builds the city of a snapshot.
 * @throws Error if an invariant is broken
 */
export function restoreSnapshot(snapshot: Snapshot): World {
  const world = new World(snapshot.seed);
  world.cityId = snapshot.cityId ?? null;
  for (const area of snapshot.areas ?? []) world.areas.add(area);
  for (const [key, reply] of snapshot.replies ?? []) world.replies.set(key, reply);
  Object.assign(world, copyPlainFields(snapshot));
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
  const numbers = unpack(snapshot.buildingNumbers, BUILDING_NUMBER_FIELDS);
  snapshot.buildings.forEach((building, i) => {
    world.putBuilding(loadBuilding(building, numbers[i] as (typeof numbers)[number]));
  });
  for (const [id, homeId, wealth, members] of snapshot.households) {
    world.households.put({ id, homeId, wealth, memberIds: [...members] });
  }
  for (const { id, householdId, bornFrame, education, workId } of unpack(
    snapshot.citizens,
    CITIZEN_NUMBER_FIELDS,
  )) {
    world.citizens.put({ id, householdId, bornFrame, education, workId });
  }
  const [fault] = findFaults(world);
  if (fault) throw new Error(fault);
  for (const building of world.buildings.all()) updateAccess(world, building);
  return world;
}

function loadLedger({ startCents, totals, week, history, loans }: Snapshot["ledger"]): Ledger {
  const ledger = new Ledger(startCents);
  Object.assign(ledger.totals, totals);
  Object.assign(ledger.week, week);
  ledger.history.push(...history);
  ledger.loans.push(...structuredClone(loans));
  return ledger;
}

function loadNode({ id, prefab, at, outside, problems, segments }: Snapshot["nodes"][number]): SimNode {
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    position: loadPoint(at),
    outside,
    problems,
    segmentIds: [...segments],
  };
}

function loadSegment(world: World, saved: Snapshot["segments"][number], traffic: RoadTraffic): SimSegment {
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

function loadBlock({ id, segment, at, angle, age, cells: digits }: Snapshot["blocks"][number]): SimZoneBlock {
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
  { prefab, at, households, workers, ...same }: Snapshot["buildings"][number],
  numbers: Record<(typeof BUILDING_NUMBER_FIELDS)[number], number>,
): SimBuilding {
  const building = newBuildingRecord(numbers.id, known(findBuildingPrefab, prefab), loadPoint(at));
  return Object.assign(building, same, numbers, {
    problemSince: [...same.problemSince],
    supply: { ...same.supply },
    householdIds: [...households],
    workerIds: [...workers],
  });
}

function unpack<K extends string>(packed: PackedNumbers, fields: readonly K[]): Record<K, number>[] {
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

type BuildingNumbers = Partial<Record<(typeof BUILDING_NUMBER_FIELDS)[number], number>>;

/** Building fields that each version introduced, with the values that they get in older saves. */
const NUMBERS_SINCE: readonly (readonly [version: number, BuildingNumbers])[] = [
  [2, { happiness: 60 }],
  [3, { commute: 0, want: 0, stored: 0, fuel: 1 }],
  [4, { waitSeconds: 0 }],
];

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
export function migrate(data: unknown, version: number): Snapshot {
  const with2 = version === 1 ? fromVersion1(data as Snapshot1) : (data as Snapshot2);
  // Without saved traffic all volumes start at zero, as in a new city.
  const with3 = version <= 2 ? { ...with2, traffic: "", trafficCursor: 0 } : (data as Snapshot);
  return { ...with3, buildingNumbers: withNewNumbers(with3.buildingNumbers, version) };
}

/** Money had no effect in version 1, so a balance below the initial balance becomes the initial balance. */
function fromVersion1({ ledgerCents, ...same }: Snapshot1): Snapshot2 {
  const { taxes, construction, upkeep } = ledgerCents;
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
  const known = BUILDING_NUMBER_FIELDS.filter((name) => !(name in added));
  const rows = unpack(packed, known).map((row) => ({ ...row, ...added }));
  return base64(
    packFields(
      rows,
      BUILDING_NUMBER_FIELDS.map((name) => (row: BuildingNumbers) => row[name] as number),
    ),
  );
}
