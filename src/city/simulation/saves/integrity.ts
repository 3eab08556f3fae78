/** Checks the invariants of a city. A save that violates one is not loaded. */
import { BLOCK_COLUMNS, lengthOf } from "../../geometry.js";
import { ZONES, zoneOf } from "../../terms.js";
import { MAX_SEGMENTS_PER_NODE } from "../fabric/network.js";
import type { Building, Household, NetNode, NetSegment, ZoneBlock } from "../state/entities.js";
import type { World } from "../state/world.js";

const CITY_ID = /^[0-9a-f]{12}$/;

/** Finds broken invariants in steps: yields undefined after each record, and after its faults. */
export function* faultsOf(world: World): Generator<string | undefined> {
  yield* identityFaults(world);
  yield* each(world.segments.all(), (segment) => segmentFaults(world, segment));
  yield* each(world.nodes.all(), (node) => nodeFaults(world, node));
  yield* each(world.blocks.all(), blockFaults);
  const taken = new Map<number, number>();
  yield* each(world.buildings.all(), (building) => buildingFaults(world, building, taken));
  yield* each(world.households.all(), (household) => householdFaults(world, household));
  yield* countFaults(world);
  yield* ledgerFaults(world);
}

function* each<T>(
  records: readonly T[],
  faultsIn: (record: T) => Generator<string>,
): Generator<string | undefined> {
  for (const record of records) {
    yield* faultsIn(record);
    yield undefined;
  }
}

/** The city id must be twelve hexadecimal digits, because it becomes part of file names. */
function* identityFaults({ cityId }: World): Generator<string> {
  if (cityId !== null && !CITY_ID.test(cityId)) yield "the city id is not twelve hexadecimal digits";
}

/** Segments end at two nodes that list them, and list the blocks that belong to them. */
function* segmentFaults(world: World, segment: NetSegment): Generator<string> {
  const { id, startNodeId, endNodeId, blockIds } = segment;
  if (startNodeId === endNodeId) yield `segment ${id} begins and ends at node ${startNodeId}`;
  if (lengthOf(segment) === 0) yield `segment ${id} has no length`;
  for (const nodeId of [startNodeId, endNodeId]) {
    if (!world.nodes.get(nodeId)?.segmentIds.includes(id))
      yield `segment ${id} is not attached to its node ${nodeId}`;
  }
  yield* repeated(`segment ${id}`, "block", blockIds);
  for (const blockId of blockIds) {
    if (world.blocks.get(blockId)?.segmentId !== id)
      yield `segment ${id} lists block ${blockId}, which is not one of its blocks`;
  }
}

function* nodeFaults(world: World, { id, segmentIds }: NetNode): Generator<string> {
  if (segmentIds.length > MAX_SEGMENTS_PER_NODE) yield `node ${id} has ${segmentIds.length} segments`;
  yield* repeated(`node ${id}`, "segment", segmentIds);
  for (const segmentId of segmentIds) {
    const segment = world.segments.get(segmentId);
    if (segment?.startNodeId !== id && segment?.endNodeId !== id) {
      yield `node ${id} lists segment ${segmentId}, which does not end there`;
    }
  }
}

/** A block has 1 to 8 complete rows, and contains only known zones. */
function* blockFaults({ id, rows, cells }: ZoneBlock): Generator<string> {
  const whole = Number.isInteger(rows) && rows >= 1 && rows <= 8 && cells.length === rows * BLOCK_COLUMNS;
  if (!whole) yield `block ${id} has ${cells.length} cells`;
  if (cells.some((cell) => cell >= ZONES.length)) yield `block ${id} contains an unknown zone`;
}

/**
 * Buildings on zone blocks are growables and share no cells. Problems have start frames. Households and workers
 * refer to the building that lists them.
 * @param taken cells of each block under the buildings so far
 */
function* buildingFaults(world: World, building: Building, taken: Map<number, number>): Generator<string> {
  const { id, blockId, lotMask, problems, problemSince, householdIds, workerIds, homes } = building;
  if (problems.names.length !== problemSince.length)
    yield `building ${id} has problems without a start frame`;
  if (householdIds.length > homes) yield `building ${id} has more households than homes`;
  yield* repeated(`building ${id}`, "household", householdIds);
  yield* repeated(`building ${id}`, "worker", workerIds);
  for (const householdId of householdIds) {
    if (world.households.get(householdId)?.homeId !== id)
      yield `building ${id} lists household ${householdId}, which does not live there`;
  }
  for (const workerId of workerIds) {
    if (world.citizens.get(workerId)?.workId !== id)
      yield `building ${id} lists worker ${workerId}, who does not work there`;
  }
  if (blockId === 0) return;
  if (!world.blocks.get(blockId)) yield `building ${id} stands on block ${blockId}, which does not exist`;
  if (zoneOf(building.prefab) === "Unzoned") yield `building ${id} is on a zone block but is not growable`;
  const others = taken.get(blockId) ?? 0;
  if ((others & lotMask) !== 0) yield `building ${id} shares a cell of block ${blockId}`;
  taken.set(blockId, others | lotMask);
}

function* householdFaults(world: World, { id, memberIds }: Household): Generator<string> {
  yield* repeated(`household ${id}`, "citizen", memberIds);
  for (const memberId of memberIds) {
    if (world.citizens.get(memberId)?.householdId !== id)
      yield `household ${id} lists citizen ${memberId}, who is not a member`;
  }
}

/**
 * Every block, household, citizen and worker is listed by its owner: the lists name nothing twice and only what belongs
 * to their owner, so it is enough that they are long enough.
 */
function* countFaults({ segments, blocks, buildings, households, citizens }: World): Generator<string> {
  const sumOf = <T>(records: readonly T[], size: (record: T) => number) =>
    records.reduce((sum, record) => sum + size(record), 0);
  const workers = sumOf(citizens.all(), ({ workId }) => (workId === 0 ? 0 : 1));
  for (const [what, owners, exist, named] of [
    ["blocks", "segments", blocks.size, sumOf(segments.all(), ({ blockIds }) => blockIds.length)],
    [
      "households",
      "homes",
      households.size,
      sumOf(buildings.all(), ({ householdIds }) => householdIds.length),
    ],
    ["citizens", "households", citizens.size, sumOf(households.all(), ({ memberIds }) => memberIds.length)],
    ["workers", "workplaces", workers, sumOf(buildings.all(), ({ workerIds }) => workerIds.length)],
  ] as const) {
    if (exist !== named) yield `${exist} ${what} exist, but ${owners} list ${named}`;
  }
}

function* ledgerFaults({ ledger }: World): Generator<string> {
  for (const [line, cents = 0] of Object.entries(ledger.totals)) {
    if (cents < 0 || !Number.isSafeInteger(cents)) yield `the ledger has ${cents} cents of ${line}`;
  }
}

/** An id that a list names twice. */
function* repeated(owner: string, what: string, ids: readonly number[]): Generator<string> {
  if (ids.length > 1 && new Set(ids).size !== ids.length) yield `${owner} lists a ${what} twice`;
}
