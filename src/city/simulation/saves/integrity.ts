/** Checks the invariants of a city. A save that violates one is not loaded. */
import { BLOCK_COLUMNS } from "../../geometry.js";
import { ZONES, zoneOf } from "../../terms.js";
import { MAX_SEGMENTS_PER_NODE } from "../fabric/network.js";
import type { World } from "../state/world.js";

const CITY_ID = /^[0-9a-f]{12}$/;

/** Describes every broken invariant; empty for a valid city. */
export function findFaults(world: World): string[] {
  return [
    ...identityFaults(world),
    ...networkFaults(world),
    ...blockFaults(world),
    ...buildingFaults(world),
    ...populationFaults(world),
    ...ledgerFaults(world),
  ];
}

/** The city id must be twelve hexadecimal digits, because it becomes part of file names. */
function identityFaults({ cityId }: World): string[] {
  return cityId === null || CITY_ID.test(cityId) ? [] : ["the city id is not twelve hexadecimal digits"];
}

/** Segments and nodes reference each other, and both ends exist. */
function* networkFaults(world: World): Generator<string> {
  for (const { id, startNodeId, endNodeId } of world.segments.all()) {
    if (startNodeId === endNodeId) yield `segment ${id} begins and ends at node ${startNodeId}`;
    for (const nodeId of [startNodeId, endNodeId]) {
      const mentions = world.nodes.get(nodeId)?.segmentIds.filter((other) => other === id).length;
      if (mentions !== 1) yield `segment ${id} is not attached to its node ${nodeId}`;
    }
  }
  for (const { id, segmentIds } of world.nodes.all()) {
    if (segmentIds.length > MAX_SEGMENTS_PER_NODE) yield `node ${id} has ${segmentIds.length} segments`;
    for (const segmentId of segmentIds) {
      const segment = world.segments.get(segmentId);
      if (segment?.startNodeId !== id && segment?.endNodeId !== id) {
        yield `node ${id} lists segment ${segmentId}, which does not end there`;
      }
    }
  }
}

/** Every block belongs to the one segment that lists it, has 1 to 8 complete rows, and contains only known zones. */
function* blockFaults(world: World): Generator<string> {
  let named = 0;
  for (const segment of world.segments.all()) {
    named += segment.blockIds.length;
    for (const id of segment.blockIds) {
      if (world.blocks.get(id)?.segmentId !== segment.id)
        yield `segment ${segment.id} lists block ${id}, which is not one of its blocks`;
    }
  }
  if (named !== world.blocks.size) yield `${world.blocks.size} blocks exist, but segments list ${named}`;
  for (const { id, rows, cells } of world.blocks.all()) {
    const whole = Number.isInteger(rows) && rows >= 1 && rows <= 8 && cells.length === rows * BLOCK_COLUMNS;
    if (!whole) yield `block ${id} has ${cells.length} cells`;
    if (cells.some((cell) => cell >= ZONES.length)) yield `block ${id} contains an unknown zone`;
  }
}

/** Buildings on zone blocks must be growables and share no cells. Problems must have start frames. */
function* buildingFaults(world: World): Generator<string> {
  const taken = new Map<number, number>();
  for (const building of world.buildings.all()) {
    const { id, blockId, lotMask, problems, problemSince } = building;
    if (problems.names.length !== problemSince.length)
      yield `building ${id} has problems without a start frame`;
    const block = blockId === 0 ? undefined : world.blocks.get(blockId);
    if (blockId !== 0 && !block) yield `building ${id} stands on block ${blockId}, which does not exist`;
    if (!block) continue;
    if (zoneOf(building.prefab) === "Unzoned") yield `building ${id} is on a zone block but is not growable`;
    if (((taken.get(blockId) ?? 0) & lotMask) !== 0) yield `building ${id} shares a cell of block ${blockId}`;
    taken.set(blockId, (taken.get(blockId) ?? 0) | lotMask);
  }
}

/**
 * Homes, households, citizens and workplaces reference each other, and households have as many members as there are
 * citizens.
 */
function* populationFaults(world: World): Generator<string> {
  let members = 0;
  for (const { id, homeId, memberIds } of world.households.all()) {
    members += memberIds.length;
    if (!world.buildings.get(homeId)?.householdIds.includes(id)) yield `household ${id} has no home`;
    for (const memberId of memberIds) {
      if (world.citizens.get(memberId)?.householdId !== id)
        yield `household ${id} lists citizen ${memberId}, who is not a member`;
    }
  }
  if (members !== world.citizens.size)
    yield `${world.citizens.size} citizens exist, but households list ${members}`;
  for (const { id, workId } of world.citizens.all()) {
    if (workId !== 0 && !world.buildings.get(workId)?.workerIds.includes(id)) {
      yield `citizen ${id} works at building ${workId}, which does not list the citizen`;
    }
  }
  for (const { id, householdIds, workerIds, homes } of world.buildings.all()) {
    if (householdIds.length > homes) yield `building ${id} has more households than homes`;
    for (const householdId of householdIds) {
      if (world.households.get(householdId)?.homeId !== id)
        yield `building ${id} lists household ${householdId}, which does not live there`;
    }
    for (const workerId of workerIds) {
      if (world.citizens.get(workerId)?.workId !== id)
        yield `building ${id} lists worker ${workerId}, who does not work there`;
    }
  }
}

function ledgerFaults({ ledger }: World): string[] {
  const sound = Object.values(ledger.totals).every((cents) => Number.isSafeInteger(cents) && cents >= 0);
  return sound ? [] : ["the ledger does not add up"];
}
