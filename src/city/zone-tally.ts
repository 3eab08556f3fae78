/**
 * Counting zone cells, per block and per cluster of neighbouring blocks. The zone detector and the zone repair both
 * judge by these numbers, so they live in one place.
 */
import type { ZoneBlock } from "./game.js";
import { ZONES, type Zone } from "./terms.js";

export interface ZoneTally {
  /** Cells per zone, Unzoned included, in the order the zones were first met. */
  readonly counts: ReadonlyMap<Zone, number>;
  readonly cells: number;
  readonly zonedCells: number;
  readonly unzonedCells: number;
  /** The most frequent zone other than Unzoned; Unzoned when there is none. */
  readonly dominantZone: Zone;
  readonly dominantCells: number;
  /** Zoned cells that are not of the dominant zone. */
  readonly minorityCells: number;
  /** How many different zones other than Unzoned occur. */
  readonly distinctZoned: number;
}

export interface ZoneThresholds {
  readonly minMinorityCells: number;
  readonly minUnzonedCells: number;
}

export interface ZoneCluster {
  readonly ix: number;
  readonly iz: number;
  readonly blocks: readonly ZoneBlock[];
}

/** Counts one block row by row. A tie for the dominant zone goes to the zone that reached the count first. */
export function tallyBlock(block: ZoneBlock): ZoneTally {
  const counts = new Map<Zone, number>();
  let dominantZone: Zone = "Unzoned";
  let dominantCells = 0;
  for (let cell = 0; cell < block.rows * 4; cell++) {
    const zone = ZONES[block.cells[cell] as number] as Zone;
    const count = (counts.get(zone) ?? 0) + 1;
    counts.set(zone, count);
    if (zone !== "Unzoned" && count > dominantCells) {
      dominantZone = zone;
      dominantCells = count;
    }
  }
  return summarize(counts, dominantZone);
}

/** Adds up the blocks of a cluster. A tie for the dominant zone goes to the zone met first. */
export function tallyCluster(cluster: ZoneCluster): ZoneTally {
  const counts = new Map<Zone, number>();
  for (const block of cluster.blocks) {
    for (const [zone, count] of tallyBlock(block).counts) counts.set(zone, (counts.get(zone) ?? 0) + count);
  }
  const zoned = [...counts].filter(([zone]) => zone !== "Unzoned");
  const [dominantZone] = zoned.reduce<[Zone, number]>(
    (best, entry) => (entry[1] > best[1] ? entry : best),
    ["Unzoned", 0],
  );
  return summarize(counts, dominantZone);
}

function summarize(counts: ReadonlyMap<Zone, number>, dominantZone: Zone): ZoneTally {
  const cells = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const unzonedCells = counts.get("Unzoned") ?? 0;
  const dominantCells = dominantZone === "Unzoned" ? 0 : (counts.get(dominantZone) ?? 0);
  return {
    counts,
    cells,
    zonedCells: cells - unzonedCells,
    unzonedCells,
    dominantZone,
    dominantCells,
    minorityCells: cells - unzonedCells - dominantCells,
    distinctZoned: counts.size - (unzonedCells > 0 ? 1 : 0),
  };
}

/** Several zones, and enough cells out of line. */
export function isMixed(tally: ZoneTally, thresholds: ZoneThresholds): boolean {
  return tally.distinctZoned > 1 && tally.minorityCells >= thresholds.minMinorityCells;
}

/** One zone only, with enough cells of it and enough holes. */
export function isPatchy(tally: ZoneTally, thresholds: ZoneThresholds): boolean {
  return (
    tally.distinctZoned === 1 &&
    tally.zonedCells >= thresholds.minMinorityCells &&
    tally.unzonedCells >= thresholds.minUnzonedCells
  );
}

/** Groups blocks by the square of `gridSize` metres their stored position lies in, in first-encounter order. */
export function clusterBlocks(blocks: readonly ZoneBlock[], gridSize: number): ZoneCluster[] {
  const clusters = new Map<string, { ix: number; iz: number; blocks: ZoneBlock[] }>();
  for (const block of blocks) {
    const ix = Math.floor((block.position.x + gridSize / 2) / gridSize);
    const iz = Math.floor((block.position.z + gridSize / 2) / gridSize);
    const key = `${ix}:${iz}`;
    const cluster = clusters.get(key);
    if (cluster) cluster.blocks.push(block);
    else clusters.set(key, { ix, iz, blocks: [block] });
  }
  return [...clusters.values()];
}
