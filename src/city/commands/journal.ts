/** Records what commands build, paint and remove, so that `undo` can revert it. */
import { isRuin, removeBuilding } from "../simulation/fabric/buildings.js";
import { removeSegment } from "../simulation/fabric/network.js";
import { rememberBuilding, rememberNode, rememberSegment } from "../simulation/fabric/restoration.js";
import { occupiedCellMask, setCells } from "../simulation/fabric/zone-blocks.js";
import type { Pool } from "../simulation/state/collections.js";
import type { Building, NetNode, NetSegment, ZoneBlock } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { FLAG } from "../terms.js";
import { obstaclesOf, obstaclesOn } from "./sites.js";

const MAX_KEPT = 200;

/** Something that a command built, painted or removed. */
interface Change {
  readonly cost: number;
  /** Called at the end of the command. Returns a function that says why the change cannot be undone any more. */
  readonly watch: () => Hindrance;
  /** Adds what did not come back to the warnings. */
  readonly revert: (warnings: string[]) => void;
}

/** Why a change cannot be undone, as a sentence without full stop; null if it can. */
type Hindrance = () => string | null;

interface Operation {
  readonly changes: readonly (Pick<Change, "cost" | "revert"> & { readonly hindrance: Hindrance })[];
  readonly sentMs: number;
  readonly frame: number;
}

interface Journal {
  /** Changes of the running command; null between commands. */
  running: Change[] | null;
  /** Operations by `opId`, oldest first. */
  readonly operations: Map<string, Operation>;
}

/** Journals are not saved: nothing can be undone after a restart or `load-city`. */
const journals = new WeakMap<World, Journal>();

function journalOf(world: World): Journal {
  const journal = journals.get(world) ?? { running: null, operations: new Map() };
  journals.set(world, journal);
  return journal;
}

/** Operations that can be undone, by the `opId` of their command. */
export function operationsOf(world: World): Map<string, Operation> {
  return journalOf(world).operations;
}

/** Runs a command. Keeps what it changes, unless its `opId` is empty. */
export function recordOperation<T>(world: World, opId: string, run: () => T): T {
  const journal = journalOf(world);
  const { running: outer, operations } = journal;
  const changes: Change[] = [];
  journal.running = changes;
  try {
    const reply = run();
    if (opId === "" || changes.length === 0) return reply;
    const watched = changes.map(({ cost, revert, watch }) => ({ cost, revert, hindrance: watch() }));
    operations.set(opId, { changes: watched, sentMs: performance.now(), frame: world.frame });
    const [oldest] = operations.keys();
    if (operations.size > MAX_KEPT && oldest !== undefined) operations.delete(oldest);
    return reply;
  } finally {
    journal.running = outer;
  }
}

export function recordBuilding(world: World, building: Building, cost: number): void {
  const isStanding = () => world.buildings.get(building.id) === building && !isRuin(building);
  record(world, {
    cost,
    watch: () => () => (isStanding() ? null : hasChanged(`Building ${building.id}`)),
    revert: () => removeBuilding(world, building),
  });
}

/** @param cost of all segments together */
export function recordSegments(world: World, segments: readonly NetSegment[], cost: number): void {
  segments.forEach((segment, i) => {
    const state = () => (world.segments.get(segment.id) === segment ? zonesAlong(world, segment) : null);
    record(world, {
      cost: i === 0 ? cost : 0,
      watch: () => unlessChanged(`Segment ${segment.id}`, state),
      revert: () => removeSegment(world, segment, false),
    });
  });
}

function zonesAlong(world: World, { blockIds }: NetSegment): string {
  return blockIds.map((id) => world.blocks.get(id)?.cells.join("") ?? "").join(" ");
}

/** Records a block that is about to be painted. Its cells that are built on until an undo keep their zone. */
export function recordPainting(world: World, { id, cells: before }: ZoneBlock): void {
  record(world, {
    cost: 0,
    watch: () => unlessChanged(`Zone block ${id}`, () => world.blocks.get(id)?.cells.join("") ?? null),
    revert: () => {
      const block = world.blocks.at(id);
      const taken = occupiedCellMask(world, block);
      const restored = block.cells.map((cell, i) => {
        const isTaken = ((taken >>> i) & 1) === 1;
        return isTaken ? cell : (before[i] as number);
      });
      setCells(world, block, restored);
    },
  });
}

/** Records a building that is about to be removed. */
export function recordBuildingRemoval(world: World, building: Building): void {
  const obstacles = () => obstaclesOn(world, building);
  // The mark of what the city itself tears down, which comes back with its street.
  building.flags &= ~FLAG.Demolishing;
  recordRemoval(
    world,
    `building ${building.id}`,
    world.buildings,
    obstacles,
    rememberBuilding(world, building),
  );
}

/** Records a segment that is about to be removed. */
export function recordSegmentRemoval(world: World, segment: NetSegment): void {
  const obstacles = () => obstaclesOf(world, segment);
  recordRemoval(world, `segment ${segment.id}`, world.segments, obstacles, rememberSegment(world, segment));
}

/**
 * @param obstacles what stands in the place of the removed entity
 * @param restore puts the entity back; adds what did not come back to the warnings
 */
function recordRemoval(
  world: World,
  name: string,
  pool: Pool<Building> | Pool<NetSegment>,
  obstacles: () => readonly (Building | NetSegment)[],
  restore: (warnings: string[]) => void,
): void {
  const { frame } = world;
  record(world, {
    cost: 0,
    watch: () => unlessBuiltOver(name, pool, () => obstacles().filter((each) => !hasGrown(each))),
    revert: (warnings) => {
      // What the city itself has built there since, gives way.
      for (const each of obstacles())
        if (hasGrown(each) && each.builtFrame >= frame) removeBuilding(world, each);
      restore(warnings);
    },
  });
}

function hasGrown(entity: Building | NetSegment): entity is Building {
  return "blockId" in entity && entity.blockId !== 0;
}

/** Records a node that is about to be removed, after its segments. */
export function recordNodeRemoval(world: World, node: NetNode): void {
  record(world, {
    cost: 0,
    watch: () => unlessBuiltOver(`node ${node.id}`, world.nodes, () => []),
    revert: rememberNode(world, node),
  });
}

function record(world: World, change: Change): void {
  journalOf(world).running?.push(change);
}

function hasChanged(name: string): string {
  return `${name} has changed since the command, so it cannot be undone; bulldoze removes it without paying back`;
}

/** @param state null: it is gone */
function unlessChanged(name: string, state: () => string | null): Hindrance {
  const built = state();
  return () => (state() === built ? null : hasChanged(name));
}

/** @param obstacles what stands in the place of the removed entity */
function unlessBuiltOver(
  name: string,
  pool: Pool<Building> | Pool<NetSegment> | Pool<NetNode>,
  obstacles: () => readonly (Building | NetSegment)[],
): Hindrance {
  const known = new Set(obstacles());
  return () => {
    if (!pool.hasRoomFor(1)) return `The city is full, so ${name} cannot be put back`;
    const added = obstacles().find((each) => !known.has(each));
    if (!added) return null;
    const kind = "startNodeId" in added ? "segment" : "building";
    return `A ${added.prefab.displayName}, ${kind} ${added.id}, is in the place of ${name} now, so it cannot be put back`;
  };
}
