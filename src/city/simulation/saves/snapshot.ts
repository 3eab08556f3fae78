/**
 * The whole state of a city as plain JSON data, and back. What can be worked out from the rest (indexes, reach of
 * roads and pipes, usable cells) is left out and worked out anew.
 */
import type { Message, Position, Problems } from "../../game.js";
import { findBuildingPrefab } from "../catalogue/building-prefabs.js";
import { findNetworkPrefab } from "../catalogue/network-prefabs.js";
import { attach } from "../fabric/reach.js";
import { Ledger, type LedgerAccount, TaxTable } from "../state/economy.js";
import type { Citizen, SimBuilding, SimNode, SimSegment, SimZoneBlock, Supply } from "../state/entities.js";
import { Random } from "../state/random.js";
import { World } from "../state/world.js";
import { findFaults } from "./integrity.js";

/** Rises when the shape of the data changes; other versions are refused. */
export const SNAPSHOT_VERSION = 1;

/** The plain numbers of a building, in the order of a saved row. */
const BUILDING_NUMBERS = [
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
] as const satisfies readonly (keyof SimBuilding)[];

const CITIZEN_NUMBERS = [
  "id",
  "householdId",
  "bornFrame",
  "education",
  "workId",
] as const satisfies (keyof Citizen)[];

type SavedPoint = [number, number, number];

export interface Snapshot {
  /** Absent from saves of older versions. */
  readonly cityId?: string;
  readonly seed: number;
  readonly frame: number;
  readonly paused: boolean;
  readonly selectedSpeed: number;
  readonly buildIndex: number;
  readonly milestone: number;
  readonly wares: number;
  readonly blockedAssetEnabled: boolean;
  readonly random: readonly number[];
  readonly demand: { readonly residential: number; readonly commercial: number; readonly workplace: number };
  readonly taxRates: readonly number[];
  readonly ledgerCents: Readonly<Record<LedgerAccount, number>>;
  readonly messages: readonly Message[];
  readonly quietUntil: readonly (readonly [string, number])[];
  readonly nodes: readonly SavedNode[];
  readonly segments: readonly SavedSegment[];
  readonly blocks: readonly SavedBlock[];
  readonly buildings: readonly SavedBuilding[];
  /** id, home, wealth, members. */
  readonly households: readonly (readonly [number, number, number, readonly number[]])[];
  /** Rows of id, household, born at frame, education, workplace. */
  readonly citizens: PackedNumbers;
  /** Rows of BUILDING_NUMBERS, in the order of `buildings`. */
  readonly buildingNumbers: PackedNumbers;
}

/** Doubles in base64: the bulk of a city, which as decimal text would take several times as long to write. */
type PackedNumbers = string;

interface SavedNode {
  readonly id: number;
  readonly prefab: string;
  readonly at: SavedPoint;
  readonly outside: boolean;
  readonly problems: Problems;
  readonly segments: readonly number[];
}

interface SavedSegment {
  readonly id: number;
  readonly prefab: string;
  readonly name: string;
  readonly namedByBuilder: boolean;
  readonly ends: readonly [number, number];
  readonly problems: Problems;
  readonly blocks: readonly number[];
}

interface SavedBlock {
  readonly id: number;
  readonly segment: number;
  readonly at: SavedPoint;
  readonly angle: number;
  readonly age: number;
  /** One digit per cell. */
  readonly cells: string;
}

interface SavedBuilding {
  readonly prefab: string;
  readonly at: SavedPoint;
  readonly problems: Problems;
  readonly problemSince: readonly number[];
  readonly switchedOff: boolean;
  readonly supply: Supply;
  readonly households: readonly number[];
  readonly workers: readonly number[];
}

export function takeSnapshot(world: World): Snapshot {
  return {
    ...(world.cityId === null ? {} : { cityId: world.cityId }),
    seed: world.seed,
    frame: world.frame,
    paused: world.paused,
    selectedSpeed: world.selectedSpeed,
    buildIndex: world.buildIndex,
    milestone: world.milestone,
    wares: world.wares,
    blockedAssetEnabled: world.blockedAssetEnabled,
    random: [...world.random.state],
    demand: { ...world.demand },
    taxRates: [...world.taxes.rates],
    ledgerCents: { ...world.ledger.cents },
    messages: [...world.board.messages],
    quietUntil: [...world.board.quietUntil],
    nodes: world.nodes.all().map(saveNode),
    segments: world.segments.all().map(saveSegment),
    blocks: world.blocks.all().map(saveBlock),
    buildings: world.buildings.all().map(saveBuilding),
    buildingNumbers: pack(world.buildings.all(), BUILDING_NUMBERS),
    households: world.households.all().map((h) => [h.id, h.homeId, h.wealth, [...h.memberIds]]),
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
  world.frame = snapshot.frame;
  world.paused = snapshot.paused;
  world.selectedSpeed = snapshot.selectedSpeed;
  world.buildIndex = snapshot.buildIndex;
  world.milestone = snapshot.milestone;
  world.wares = snapshot.wares;
  world.blockedAssetEnabled = snapshot.blockedAssetEnabled;
  world.random = new Random(Uint32Array.from(snapshot.random));
  Object.assign(world.demand, snapshot.demand);
  world.taxes = new TaxTable(Uint8Array.from(snapshot.taxRates));
  world.ledger = new Ledger({ ...snapshot.ledgerCents });
  world.board.messages = [...snapshot.messages];
  world.board.quietUntil = new Map(snapshot.quietUntil);
  for (const node of snapshot.nodes) world.putNode(loadNode(node));
  for (const segment of snapshot.segments) world.putSegment(loadSegment(world, segment));
  for (const block of snapshot.blocks) world.putBlock(loadBlock(block));
  const numbers = unpack(snapshot.buildingNumbers, BUILDING_NUMBERS);
  snapshot.buildings.forEach((building, i) => {
    world.putBuilding(loadBuilding(building, numbers[i] as (typeof numbers)[number]));
  });
  for (const [id, homeId, wealth, members] of snapshot.households) {
    world.households.put({ id, homeId, wealth, memberIds: [...members] });
  }
  for (const citizen of unpack(snapshot.citizens, CITIZEN_NUMBERS)) world.citizens.put(citizen);
  const [fault] = findFaults(world);
  if (fault) throw new Error(fault);
  for (const building of world.buildings.all()) attach(world, building);
  return world;
}

function saveNode(node: SimNode): SavedNode {
  const { id, outside, problems } = node;
  return {
    id,
    prefab: node.prefab.name,
    at: savePoint(node.position),
    outside,
    problems,
    segments: [...node.segmentIds],
  };
}

function loadNode({ id, prefab, at, outside, problems, segments }: SavedNode): SimNode {
  return {
    id,
    prefab: known(findNetworkPrefab, prefab),
    position: loadPoint(at),
    outside,
    problems,
    segmentIds: [...segments],
  };
}

function saveSegment(segment: SimSegment): SavedSegment {
  const { id, name, namedByBuilder, startNodeId, endNodeId, problems } = segment;
  return {
    id,
    prefab: segment.prefab.name,
    name,
    namedByBuilder,
    ends: [startNodeId, endNodeId],
    problems,
    blocks: [...segment.blockIds],
  };
}

function loadSegment(world: World, saved: SavedSegment): SimSegment {
  const [startNodeId, endNodeId] = saved.ends;
  return {
    id: saved.id,
    prefab: known(findNetworkPrefab, saved.prefab),
    name: saved.name,
    namedByBuilder: saved.namedByBuilder,
    startNodeId,
    endNodeId,
    start: world.nodes.at(startNodeId).position,
    end: world.nodes.at(endNodeId).position,
    problems: saved.problems,
    blockIds: [...saved.blocks],
  };
}

function saveBlock(block: SimZoneBlock): SavedBlock {
  const { id, segmentId, position, angleRadians, age, cells } = block;
  return { id, segment: segmentId, at: savePoint(position), angle: angleRadians, age, cells: cells.join("") };
}

function loadBlock({ id, segment, at, angle, age, cells }: SavedBlock): SimZoneBlock {
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

function saveBuilding(building: SimBuilding): SavedBuilding {
  const { problems, problemSince, switchedOff, supply, householdIds, workerIds } = building;
  return {
    prefab: building.prefab.name,
    at: savePoint(building.position),
    problems,
    problemSince,
    switchedOff,
    supply: { ...supply },
    households: [...householdIds],
    workers: [...workerIds],
  };
}

function loadBuilding(
  saved: SavedBuilding,
  numbers: Record<(typeof BUILDING_NUMBERS)[number], number>,
): SimBuilding {
  return {
    ...numbers,
    prefab: known(findBuildingPrefab, saved.prefab),
    position: loadPoint(saved.at),
    problems: saved.problems,
    problemSince: [...saved.problemSince],
    switchedOff: saved.switchedOff,
    supply: { ...saved.supply },
    householdIds: [...saved.households],
    workerIds: [...saved.workers],
    roadId: 0,
    waterPipeIds: [],
    heatPipeIds: [],
  };
}

function pack<K extends string>(
  rows: readonly Readonly<Record<K, number>>[],
  fields: readonly K[],
): PackedNumbers {
  const values = new Float64Array(rows.length * fields.length);
  let at = 0;
  for (const row of rows) for (const field of fields) values[at++] = row[field];
  return Buffer.from(values.buffer).toString("base64");
}

function unpack<K extends string>(packed: PackedNumbers, fields: readonly K[]): Record<K, number>[] {
  const bytes = Buffer.from(packed, "base64");
  const count = bytes.length / (8 * fields.length);
  return Array.from({ length: count }, (_, row) => {
    const record = {} as Record<K, number>;
    fields.forEach((field, i) => {
      record[field] = bytes.readDoubleLE(8 * (row * fields.length + i));
    });
    return record;
  });
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
