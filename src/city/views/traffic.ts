/** Traffic of roads: the read endpoint, its histogram and the mean flow. */

import { z } from "zod";
import { distance, lengthOf, middle } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { cachedByRevision } from "../revision-cache.js";
import { type SegmentTraffic, trafficOf } from "../simulation/life/traffic.js";
import type { NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { RowCache } from "../wire/answers.js";
import { type LimitRule, paginate } from "./listing.js";

const TRAFFIC_LIMIT: LimitRule = { fallback: 50, max: 2000 };
const DEFAULT_RADIUS_METERS = 500;
/** Width of a histogram bar, in percent of density. */
const STEP_PERCENT = 20;

/**
 * GET /state/traffic: roads of at least `minDensity`, densest first. If `x` and `z` are given, only roads whose
 * middle lies within `radius` of that point. Histogram and flow ignore `minDensity`.
 */
export const traffic: ReadRoute = {
  path: "/state/traffic",
  label: "Read traffic",
  parameters: {
    ...LIST_PARAMETERS,
    x: z.number().optional(),
    z: z.number().optional(),
    radius: z.number().default(DEFAULT_RADIUS_METERS),
    minDensity: z.number().default(0).describe("Percent of the capacity."),
  },
  read: ({ world, query }) => {
    const minDensity = query.decimal("minDensity", 0);
    const center = { x: query.decimal("x", Number.NaN), z: query.decimal("z", Number.NaN) };
    const radius = query.decimal("radius", DEFAULT_RADIUS_METERS);
    const isNear = ({ segment }: Road) => distance(middle(segment), center) <= radius;
    const all = loadsOf(world);
    const selected = Number.isNaN(center.x + center.z) ? all : all.filter(isNear);
    const dense = selected.filter(({ load }) => load.densityPercent >= minDensity);
    const { page, rows } = paginate(dense, query, TRAFFIC_LIMIT);
    return {
      ...page,
      trafficFlowPercent: flowPercent(selected),
      histogram: histogram(selected),
      segments: rowCache.write(rows),
    };
  },
};

interface Road {
  readonly segment: NetSegment;
  readonly load: SegmentTraffic;
}

/** Roads with their traffic, densest first. */
const loadsOf = cachedByRevision("trafficRevision", (world: World): readonly Road[] =>
  world.segments
    .all()
    .flatMap((segment) => {
      const load = trafficOf(segment);
      return load ? [{ segment, load }] : [];
    })
    .sort((a, b) => b.load.densityPercent - a.load.densityPercent || a.segment.id - b.segment.id),
);

const rowCache = new RowCache(row, () => []);

/** Mean speed of the cars on the roads at one moment, in percent of the speed on empty roads. */
function flowPercent(roads: readonly Road[]): number {
  let cars = 0;
  let flow = 0;
  for (const { segment, load } of roads) {
    const present = (load.volumePerHour * lengthOf(segment)) / load.speedKmh;
    cars += present;
    flow += (present * load.speedKmh) / load.freeSpeedKmh;
  }
  return cars === 0 ? 100 : (100 * flow) / cars;
}

/** Number of roads by range of density: `0-20`, `20-40` and so on. */
function histogram(roads: readonly Road[]): Record<string, number> {
  const steps = Array.from({ length: 100 / STEP_PERCENT }, (_, i) => i * STEP_PERCENT);
  return Object.fromEntries(
    steps.map((from) => {
      const isLast = from + STEP_PERCENT >= 100;
      const inside = roads.filter(
        ({ load: { densityPercent } }) =>
          densityPercent >= from && (isLast || densityPercent < from + STEP_PERCENT),
      );
      return [`${from}-${from + STEP_PERCENT}`, inside.length];
    }),
  );
}

function row({ segment, load }: Road) {
  const { id, prefab, name, start, end } = segment;
  const { densityPercent: density, ...rest } = load;
  return {
    segmentId: id,
    prefab: prefab.name,
    name,
    density,
    ...rest,
    position: middle({ start, end }),
  };
}
