/** Zoning that looks unintended: several zones mixed, or one zone full of holes, by block and by cluster of blocks. */
import type { City, ZoneBlock } from "../game.js";
import { position } from "../geometry.js";
import { keptPer } from "../kept.js";
import type { Anomaly } from "../state/listing.js";
import {
  areUniform,
  clusterBlocks,
  isMixed,
  isPatchy,
  tallyBlock,
  tallyCells,
  type ZoneCluster,
  type ZoneTally,
  type ZoneThresholds,
} from "../zone-tally.js";

const CLUSTER_METERS = 80;

export interface ZoneRules extends ZoneThresholds {
  readonly includeUnzonedHoles: boolean;
}

/** What is wrong, and how it is told, which not everything that is found is. */
export interface Mottling {
  readonly type: string;
  describe(): Anomaly;
}

/** Blocks by id, then clusters in the order their first blocks come. */
export function findMottledZones(city: City, rules: ZoneRules): Mottling[] {
  const { blocks, clusters } = mixturesOf(city);
  return [
    ...blocks.flatMap(({ block, tally }): Mottling[] => {
      const fault = faultOf(tally, rules, "mixedZoneBlock", "patchyUnzonedHoles");
      return fault ? [{ type: fault.type, describe: () => blockRow(block, tally, fault) }] : [];
    }),
    ...clusters.flatMap(({ cluster, tally }): Mottling[] => {
      const fault = faultOf(tally, rules, "mixedZoneCluster", "patchyZoneCluster");
      return fault ? [{ type: fault.type, describe: () => clusterRow(cluster, tally, fault) }] : [];
    }),
  ];
}

/** The blocks, and the clusters, that are not of one zone throughout. */
const mixturesOf = keptPer("zoneRevision", (city) => {
  const blocks = city.zoneBlocks();
  return {
    blocks: blocks
      .filter(({ commonZone }) => commonZone < 0)
      .map((block) => ({ block, tally: tallyBlock(block) })),
    clusters: clusterBlocks(blocks, CLUSTER_METERS)
      .filter((cluster) => !areUniform(cluster.blocks))
      .map((cluster) => ({ cluster, tally: tallyCells(cluster.blocks) })),
  };
});

interface Fault {
  readonly type: string;
  readonly suspiciousCells: number;
}

function faultOf(tally: ZoneTally, rules: ZoneRules, mixed: string, patchy: string): Fault | null {
  if (isMixed(tally, rules)) return { type: mixed, suspiciousCells: tally.minorityCells };
  if (rules.includeUnzonedHoles && isPatchy(tally, rules)) {
    return { type: patchy, suspiciousCells: tally.unzonedCells };
  }
  return null;
}

function blockRow(block: ZoneBlock, tally: ZoneTally, { type, suspiciousCells }: Fault): Anomaly {
  return {
    type,
    blockId: block.id,
    rowCount: block.rows,
    cellCount: tally.cells,
    zonedCells: tally.zonedCells,
    unzonedCells: tally.unzonedCells,
    dominantZone: tally.dominantZone,
    suspiciousCells,
    zoneCounts: Object.fromEntries(tally.counts),
    position: position(block.position),
  };
}

function clusterRow({ ix, iz, blocks }: ZoneCluster, tally: ZoneTally, fault: Fault): Anomaly {
  return {
    type: fault.type,
    clusterKey: `${ix}:${iz}`,
    blockCount: blocks.length,
    cellCount: tally.cells,
    zonedCells: tally.zonedCells,
    unzonedCells: tally.unzonedCells,
    dominantZone: tally.dominantZone,
    dominantCells: tally.dominantCells,
    minorityCells: tally.minorityCells,
    distinctZoned: tally.distinctZoned,
    suspiciousCells: fault.suspiciousCells,
    zoneCounts: Object.fromEntries(tally.counts),
    ...placeOf(blocks),
  };
}

/** The mean of the blocks' positions, and their bounds. */
function placeOf(blocks: readonly ZoneBlock[]) {
  const sum = { x: 0, y: 0, z: 0 };
  const bounds = { minX: Infinity, maxX: -Infinity, minZ: Infinity, maxZ: -Infinity };
  for (const { position: at } of blocks) {
    sum.x += at.x;
    sum.y += at.y;
    sum.z += at.z;
    bounds.minX = Math.min(bounds.minX, at.x);
    bounds.maxX = Math.max(bounds.maxX, at.x);
    bounds.minZ = Math.min(bounds.minZ, at.z);
    bounds.maxZ = Math.max(bounds.maxZ, at.z);
  }
  const count = blocks.length;
  return { position: { x: sum.x / count, y: sum.y / count, z: sum.z / count }, bounds };
}
