/** Counts of zone cells per block and cluster, shared by the zone detector and the zone repair. */

import { gridIndexOf, squareKey } from "./geometry.js";
import type { ZoneBlock } from "./simulation/state/entities.js";
import { ZONES, type Zone } from "./terms.js";

const UNZONED = ZONES.indexOf("Unzoned");

export type ZoneTally = ReturnType<typeof summarize>;

export interface ZoneThresholds {
  readonly minMinorityCells: number;
  readonly minUnzonedCells: number;
}

export interface ZoneCluster {
  readonly ix: number;
  readonly iz: number;
  readonly blocks: ZoneBlock[];
}

/** Zone of all cells, or -1 if they differ. */
export function commonZoneOf(cells: ZoneBlock["cells"]): number {
  const first = cells[0] as number;
  for (let i = 1; i < cells.length; i++) if (cells[i] !== first) return -1;
  return first;
}

/** Whether all cells of all blocks have the same zone. Most clusters do, and need no tally. */
export function areUniform(blocks: readonly ZoneBlock[]): boolean {
  const first = (blocks[0] as ZoneBlock).commonZone;
  if (first < 0) return false;
  for (const { commonZone } of blocks) if (commonZone !== first) return false;
  return true;
}

/** Counts one block row by row. A tie for the dominant zone goes to the zone that reached the count first. */
export function tallyBlock(block: ZoneBlock) {
  const counts: number[] = ZONES.map(() => 0);
  const met: number[] = [];
  let dominant = UNZONED;
  for (const zone of block.cells) {
    if (counts[zone] === 0) met.push(zone);
    const count = (counts[zone] as number) + 1;
    counts[zone] = count;
    if (zone !== UNZONED && (dominant === UNZONED || count > (counts[dominant] as number))) dominant = zone;
  }
  return summarize(met, counts, dominant);
}

/** Adds up blocks. A tie for the dominant zone goes to the zone that occurs first. */
export function tallyCells(blocks: readonly ZoneBlock[]) {
  const counts: number[] = ZONES.map(() => 0);
  const met: number[] = [];
  const add = (zone: number, cells: number) => {
    if (counts[zone] === 0) met.push(zone);
    counts[zone] = (counts[zone] as number) + cells;
  };
  for (const { commonZone, cells } of blocks) {
    if (commonZone >= 0) add(commonZone, cells.length);
    else for (const zone of cells) add(zone, 1);
  }
  const countOf = (zone: number) => (zone === UNZONED ? 0 : (counts[zone] as number));
  const dominant = met.reduce((best, zone) => (countOf(zone) > countOf(best) ? zone : best), UNZONED);
  return summarize(met, counts, dominant);
}

/** @param met the zones that occur, in the order of first occurrence */
function summarize(met: readonly number[], counts: readonly number[], dominant: number) {
  const countOf = (zone: number) => counts[zone] as number;
  const cells = met.reduce((sum, zone) => sum + countOf(zone), 0);
  const unzonedCells = countOf(UNZONED);
  const dominantCells = dominant === UNZONED ? 0 : countOf(dominant);
  return {
    /** Cells per zone, Unzoned included, in order of first occurrence. */
    counts: new Map(met.map((zone) => [ZONES[zone] as Zone, countOf(zone)])),
    cells,
    zonedCells: cells - unzonedCells,
    unzonedCells,
    /** The most frequent zone other than Unzoned; Unzoned when there is none. */
    dominantZone: ZONES[dominant] as Zone,
    dominantCells,
    /** Zoned cells that are not of the dominant zone. */
    minorityCells: cells - unzonedCells - dominantCells,
    /** Number of different zones other than Unzoned. */
    distinctZoned: met.length - (unzonedCells > 0 ? 1 : 0),
  };
}

/** Whether there are several zones, and at least `minMinorityCells` zoned cells outside the dominant one. */
export function isMixed(tally: ZoneTally, thresholds: ZoneThresholds): boolean {
  return tally.distinctZoned > 1 && tally.minorityCells >= thresholds.minMinorityCells;
}

/**
 * Whether one zone has unzoned gaps. All zoned cells must have the same zone. At least `minMinorityCells` cells
 * must be zoned, and at least `minUnzonedCells` unzoned.
 */
export function isPatchy(tally: ZoneTally, thresholds: ZoneThresholds): boolean {
  return (
    tally.distinctZoned === 1 &&
    tally.zonedCells >= thresholds.minMinorityCells &&
    tally.unzonedCells >= thresholds.minUnzonedCells
  );
}

/** Groups blocks by the square of `gridSize` metres that contains them, in order of first occurrence. */
export function clusterBlocks(blocks: readonly ZoneBlock[], gridSize: number): ZoneCluster[] {
  const clusters = new Map<number, ZoneCluster>();
  for (const block of blocks) {
    const ix = gridIndexOf(block.position.x, gridSize);
    const iz = gridIndexOf(block.position.z, gridSize);
    const key = squareKey(ix, iz);
    const cluster = clusters.get(key);
    if (cluster) cluster.blocks.push(block);
    else clusters.set(key, { ix, iz, blocks: [block] });
  }
  return [...clusters.values()];
}
