/** Detects zoning that is probably unintended: mixed zones, or a zone with many unzoned cells. */

import { boundsOf, meanOf } from "../geometry.js";
import { cachedByRevision } from "../revision-cache.js";
import type { ZoneBlock } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import type { Anomaly } from "../views/listing.js";
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

/**
 * Anomalies of blocks by id, then of clusters by their first block. `describe` builds a row, and is called only for the
 * requested page.
 */
export function findMottledZones(world: World, rules: ZoneThresholds & { includeUnzonedHoles: boolean }) {
  return mixturesOf(world).flatMap(({ tally, mixed, patchy, describe }) => {
    if (isMixed(tally, rules)) return [{ type: mixed, describe: () => describe(mixed, tally.minorityCells) }];
    if (!rules.includeUnzonedHoles || !isPatchy(tally, rules)) return [];
    return [{ type: patchy, describe: () => describe(patchy, tally.unzonedCells) }];
  });
}

/** Zone counts of a block or cluster, and the anomaly types to report for mixed and for patchy zones. */
interface Mixture {
  readonly tally: ZoneTally;
  readonly mixed: string;
  readonly patchy: string;
  readonly describe: (type: string, suspiciousCells: number) => Anomaly;
}

const mixturesOf = cachedByRevision("zoneRevision", (world: World): readonly Mixture[] => {
  const blocks = world.blocks.all();
  const clusters = clusterBlocks(blocks, CLUSTER_METERS);
  return [
    ...blocks.filter(({ commonZone }) => commonZone < 0).map(blockMixture),
    ...clusters.filter((cluster) => !areUniform(cluster.blocks)).map(clusterMixture),
  ];
});

function blockMixture(block: ZoneBlock): Mixture {
  const tally = tallyBlock(block);
  const describe = (type: string, suspiciousCells: number): Anomaly => ({
    type,
    blockId: block.id,
    rowCount: block.rows,
    ...figuresOf(tally),
    suspiciousCells,
    zoneCounts: Object.fromEntries(tally.counts),
    position: block.position,
  });
  return { tally, mixed: "mixedZoneBlock", patchy: "patchyUnzonedHoles", describe };
}

function clusterMixture({ ix, iz, blocks }: ZoneCluster): Mixture {
  const tally = tallyCells(blocks);
  const { dominantCells, minorityCells, distinctZoned } = tally;
  const describe = (type: string, suspiciousCells: number): Anomaly => {
    const places = blocks.map((block) => block.position);
    return {
      type,
      clusterKey: `${ix}:${iz}`,
      blockCount: blocks.length,
      ...figuresOf(tally),
      dominantCells,
      minorityCells,
      distinctZoned,
      suspiciousCells,
      zoneCounts: Object.fromEntries(tally.counts),
      position: meanOf(places),
      bounds: boundsOf(places),
    };
  };
  return { tally, mixed: "mixedZoneCluster", patchy: "patchyZoneCluster", describe };
}

function figuresOf({ cells: cellCount, zonedCells, unzonedCells, dominantZone }: ZoneTally) {
  return { cellCount, zonedCells, unzonedCells, dominantZone };
}
