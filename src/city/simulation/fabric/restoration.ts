/** Puts removed buildings, nodes and segments back, with what belonged to them. */
import { footprintRadius, squareAround } from "../../geometry.js";
import { FLAG } from "../../terms.js";
import type { Pool } from "../state/collections.js";
import type { Building, Citizen, Household, NetNode, NetSegment, ZoneBlock } from "../state/entities.js";
import type { World } from "../state/world.js";
import { takeJob } from "./citizens.js";
import { createNode, isCompatible, MAX_SEGMENTS_PER_NODE } from "./network.js";
import { updateAccess, updateAccessNear } from "./reach.js";
import {
  buildingsOnBlock,
  invalidateOccupiedCells,
  invalidateUsableCells,
  occupiedCellMask,
} from "./zone-blocks.js";

/** A household that moves out when its home is removed. */
interface Family {
  readonly household: Household;
  readonly members: readonly { readonly citizen: Citizen; readonly workplace: Building | undefined }[];
}

/**
 * Remembers a building that is about to be removed.
 * @returns puts it back with its residents and workers; adds what did not come back to the warnings
 */
export function rememberBuilding(world: World, building: Building): (warnings: string[]) => void {
  const { households, citizens, buildings } = world;
  const families = building.householdIds.map((id): Family => {
    const household = households.at(id);
    const members = household.memberIds.map((each) => {
      const citizen = citizens.at(each);
      return { citizen, workplace: buildings.get(citizen.workId) };
    });
    return { household, members };
  });
  const workers = building.workerIds.map((id) => citizens.at(id));
  const block = world.blocks.get(building.blockId);
  const { visitors } = building;
  return (warnings) => {
    if (!block || !isLotFree(world, building, block)) Object.assign(building, { blockId: 0, lotMask: 0 });
    takeFreeId(buildings, building);
    Object.assign(building, { visitors, roadId: 0 });
    world.putBuilding(building);
    world.buildIndex += 1;
    updateAccess(world, building);
    invalidateOccupiedCells(world, squareAround(building.position, footprintRadius(building)));
    const stayedAway = families.filter((family) => !moveBack(world, building, family)).length;
    for (const worker of workers) {
      if (citizens.get(worker.id) === worker) returnToWork(world, worker, building);
    }
    if (stayedAway > 0) warnings.push(`${stayedAway} households did not come back: the city is full`);
  };
}

/** Whether the lot of a removed building still exists, and no other building has taken it. */
function isLotFree(world: World, { blockId, lotMask }: Building, { age }: ZoneBlock): boolean {
  const block = world.blocks.get(blockId);
  return block?.age === age && (occupiedCellMask(world, block) & lotMask) === 0;
}

/** @returns false if the city is full */
function moveBack(world: World, home: Building, { household, members }: Family): boolean {
  const { households, citizens, statistics } = world;
  if (!households.hasRoomFor(1) || !citizens.hasRoomFor(members.length)) return false;
  takeFreeId(households, household);
  Object.assign(household, { homeId: home.id, memberIds: [] });
  households.put(household);
  home.householdIds.push(household.id);
  for (const { citizen, workplace } of members) {
    takeFreeId(citizens, citizen);
    citizen.householdId = household.id;
    citizens.put(citizen);
    household.memberIds.push(citizen.id);
    if (workplace && world.buildings.get(workplace.id) === workplace) returnToWork(world, citizen, workplace);
  }
  statistics.week.departures = Math.max(0, statistics.week.departures - members.length);
  return true;
}

/** Gives a citizen a former job back, unless one of both is taken. */
function returnToWork(world: World, citizen: Citizen, workplace: Building): void {
  const isVacant = workplace.workerIds.length < workplace.jobs;
  if (citizen.workId === 0 && isVacant) takeJob(world, citizen, workplace);
}

/** Remembers a node that is about to be removed. @returns puts it back without segments */
export function rememberNode(world: World, node: NetNode): () => void {
  return () => putNode(world, node);
}

/**
 * Remembers a segment that is about to be removed.
 * @returns puts it back with its ends, its zones and the lots of the buildings along it. Buildings that were torn down for
 * want of a zone come back empty
 */
export function rememberSegment(world: World, segment: NetSegment): (warnings: string[]) => void {
  const { startNodeId, endNodeId } = segment;
  const [formerStart, formerEnd] = [world.nodes.at(startNodeId), world.nodes.at(endNodeId)];
  const strips = segment.blockIds.map((id) => {
    const block = world.blocks.at(id);
    return { block, lots: lotsOn(world, block) };
  });
  return (warnings) => {
    const start = endOf(world, segment, formerStart, null);
    const end = endOf(world, segment, formerEnd, start);
    takeFreeId(world.segments, segment);
    Object.assign(segment, { startNodeId: start.id, endNodeId: end.id });
    start.segmentIds.push(segment.id);
    end.segmentIds.push(segment.id);
    world.segments.put(segment);
    world.buildIndex += 2;
    for (const { block, lots } of strips) {
      if (!world.blocks.hasRoomFor(1)) break;
      takeFreeId(world.blocks, block);
      Object.assign(block, { segmentId: segment.id, usable: null, occupied: null });
      world.blocks.put(block);
      segment.blockIds.push(block.id);
      for (const { building, lotMask } of lots) {
        const isStanding = world.buildings.get(building.id) === building;
        const isFree = (occupiedCellMask(world, block) & lotMask) === 0;
        if (isStanding ? building.blockId !== 0 : !wasTornDown(building) || !isFree) continue;
        Object.assign(building, { blockId: block.id, lotMask, flags: building.flags & ~FLAG.Demolishing });
        if (!isStanding) rememberBuilding(world, building)(warnings);
      }
    }
    invalidateUsableCells(world, segment);
    updateAccessNear(world, [segment]);
  };
}

/** Whether a building that is gone was removed because its zone had changed, and not by a command. */
function wasTornDown({ flags }: Building): boolean {
  return (flags & FLAG.Demolishing) !== 0;
}

function lotsOn(world: World, block: ZoneBlock) {
  return buildingsOnBlock(world, block).map((building) => ({ building, lotMask: building.lotMask }));
}

/** The node at which a segment ends again: the former one, another at its place, or a new one. */
function endOf(world: World, { prefab }: NetSegment, former: NetNode, other: NetNode | null): NetNode {
  const isUsable = (node: NetNode) => node !== other && node.segmentIds.length < MAX_SEGMENTS_PER_NODE;
  const isStanding = world.nodes.get(former.id) === former;
  if (isStanding && isUsable(former)) return former;
  const there = world.nodes.near(squareAround(former.position, 0));
  const shared = there.find((node) => isCompatible(node.prefab, prefab) && isUsable(node));
  if (shared) return shared;
  if (isStanding) return createNode(world, prefab, former.position, false);
  putNode(world, former);
  return former;
}

function putNode(world: World, node: NetNode): void {
  takeFreeId(world.nodes, node);
  world.nodes.put(node);
  world.buildIndex += 1;
}

/** Gives a removed entity another id if its former one is taken. */
function takeFreeId<T extends { readonly id: number }>(pool: Pool<T>, entity: T): void {
  if (pool.get(entity.id)) Object.assign(entity, { id: pool.nextId() });
}
