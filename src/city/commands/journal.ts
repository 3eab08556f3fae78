/** Records what commands build and paint, so that `undo` can take it down. */
import { isRuin, removeBuilding } from "../simulation/fabric/buildings.js";
import { removeSegment } from "../simulation/fabric/network.js";
import { occupiedCellMask, setCells } from "../simulation/fabric/zone-blocks.js";
import type { Building, NetSegment, ZoneBlock } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";

const MAX_KEPT = 200;

/** Something that a command built or painted. */
interface Change {
  readonly name: string;
  readonly cost: number;
  /** Its state, which changes if another command changes it; null: it is gone. */
  readonly state: () => string | null;
  readonly revert: () => void;
}

interface Operation {
  /** Changes with their state at the end of the command. */
  readonly changes: readonly (Change & { readonly builtState: string | null })[];
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
    const built = changes.map((change) => ({ ...change, builtState: change.state() }));
    operations.set(opId, { changes: built, sentMs: performance.now(), frame: world.frame });
    const [oldest] = operations.keys();
    if (operations.size > MAX_KEPT && oldest !== undefined) operations.delete(oldest);
    return reply;
  } finally {
    journal.running = outer;
  }
}

export function recordBuilding(world: World, building: Building, cost: number): void {
  journalOf(world).running?.push({
    name: `Building ${building.id}`,
    cost,
    state: () => (world.buildings.get(building.id) === building && !isRuin(building) ? "stands" : null),
    revert: () => removeBuilding(world, building),
  });
}

/** @param cost of all segments together */
export function recordSegments(world: World, segments: readonly NetSegment[], cost: number): void {
  segments.forEach((segment, i) => {
    journalOf(world).running?.push({
      name: `Segment ${segment.id}`,
      cost: i === 0 ? cost : 0,
      state: () => (world.segments.get(segment.id) === segment ? zonesAlong(world, segment) : null),
      revert: () => removeSegment(world, segment, false),
    });
  });
}

function zonesAlong(world: World, { blockIds }: NetSegment): string {
  return blockIds.map((id) => world.blocks.get(id)?.cells.join("") ?? "").join(" ");
}

/** Records a block that is about to be painted. Its cells that are built on until an undo keep their zone. */
export function recordPainting(world: World, { id, cells: before }: ZoneBlock): void {
  journalOf(world).running?.push({
    name: `Zone block ${id}`,
    cost: 0,
    state: () => world.blocks.get(id)?.cells.join("") ?? null,
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
