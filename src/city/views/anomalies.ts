import { z } from "zod";
import { findBuildingOverlaps } from "../anomalies/building-overlaps.js";
import { findConflictingRoads, findDeadEnds, findShortStubs } from "../anomalies/road-network.js";
import { findTerrainMismatches } from "../anomalies/road-terrain.js";
import { findMottledZones } from "../anomalies/zone-mottling.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { cachedByRevision } from "../revision-cache.js";
import type { World } from "../simulation/state/world.js";
import { type Anomaly, countBy, PROBLEM_LIMIT, paginate } from "./listing.js";

/** GET /state/road-anomalies. Lists stubs first, then conflicting roads, terrain mismatches and dead ends. */
const roadAnomalies: ReadRoute = {
  path: "/state/road-anomalies",
  label: "Inspect road anomalies",
  parameters: {
    ...LIST_PARAMETERS,
    nearMissDistance: z.number().default(16),
    shortSegmentLength: z.number().default(28),
    includeDeadEnds: z.boolean().default(true),
  },
  read: ({ world, query }) => {
    const nearMissDistance = Math.max(query.decimal("nearMissDistance", 16), 1);
    const shortSegmentLength = Math.max(query.decimal("shortSegmentLength", 28), 1);
    const includeDeadEnds = query.flag("includeDeadEnds", true);
    const found = [
      ...findShortStubs(world, shortSegmentLength),
      ...cachedFindings(world),
      ...findDeadEnds(world, nearMissDistance, includeDeadEnds),
    ];
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    const rules = { nearMissDistance, shortSegmentLength, includeDeadEnds };
    return { ...page, ...rules, counts: countBy(found, ({ type }) => type), anomalies: rows };
  },
};

/** Caches the results of the two most expensive detectors. */
const cachedFindings = cachedByRevision("networkRevision", (world: World): readonly Anomaly[] => [
  ...findConflictingRoads(world),
  ...findTerrainMismatches(world),
]);

const buildingAnomalies: ReadRoute = {
  path: "/state/building-anomalies",
  label: "Inspect building placement",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const found = findBuildingOverlaps(world);
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    return { ...page, counts: { buildingRoadOverlap: found.length }, anomalies: rows };
  },
};

const zoneAnomalies: ReadRoute = {
  path: "/state/zone-anomalies",
  label: "Inspect zoning anomalies",
  parameters: {
    ...LIST_PARAMETERS,
    minMinorityCells: z.int().default(3),
    minUnzonedCells: z.int().default(6),
    includeUnzonedHoles: z.boolean().default(true),
  },
  read: ({ world, query }) => {
    const rules = {
      minMinorityCells: Math.max(query.integer("minMinorityCells", 3), 1),
      minUnzonedCells: Math.max(query.integer("minUnzonedCells", 6), 1),
      includeUnzonedHoles: query.flag("includeUnzonedHoles", true),
    };
    const found = findMottledZones(world, rules);
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    const anomalies = rows.map((mottling) => mottling.describe());
    return { ...page, ...rules, counts: countBy(found, ({ type }) => type), anomalies };
  },
};

export const ANOMALY_READS = [buildingAnomalies, roadAnomalies, zoneAnomalies];
