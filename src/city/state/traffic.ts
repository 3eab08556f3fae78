/** What drives where. */
import type { City, NetSegment, SegmentTraffic } from "../game.js";
import { distance, middle, position } from "../geometry.js";
import { keptPer } from "../kept.js";
import type { ReadRoute } from "../route.js";
import { KeptRows } from "../wire/answers.js";
import { type LimitRule, paginate } from "./listing.js";

const TRAFFIC_LIMIT: LimitRule = { fallback: 50, max: 2000 };
const DEFAULT_RADIUS_METERS = 500;
/** The width of the histogram's bars, in percent of density. */
const STEP_PERCENT = 20;

/**
 * GET /state/traffic: roads by their density, the densest first: those of at least `minDensity`, with `x` and `z` those
 * whose middle lies within `radius` alone. The histogram and the flow are of all roads that are asked for.
 */
export const traffic: ReadRoute = {
  path: "/state/traffic",
  label: "Read traffic",
  read: ({ city, query }) => {
    const minDensity = query.decimal("minDensity", 0);
    const center = { x: query.decimal("x", Number.NaN), z: query.decimal("z", Number.NaN) };
    const radius = query.decimal("radius", DEFAULT_RADIUS_METERS);
    const isNear = ({ segment }: Road) => distance(middle(segment), center) <= radius;
    const all = loadsOf(city);
    const asked = Number.isNaN(center.x + center.z) ? all : all.filter(isNear);
    const dense = asked.filter(({ load }) => load.densityPercent >= minDensity);
    const { page, rows } = paginate(dense, query, TRAFFIC_LIMIT);
    return {
      ok: true,
      ...page,
      trafficFlowPercent: flowPercent(asked),
      histogram: histogram(asked),
      segments: kept.write(rows),
    };
  },
};

interface Road {
  readonly segment: NetSegment;
  readonly load: SegmentTraffic;
}

/** The densest first. */
const loadsOf = keptPer("trafficRevision", (city: City): readonly Road[] =>
  city
    .segments()
    .flatMap((segment) => {
      const load = city.traffic(segment.id);
      return load ? [{ segment, load }] : [];
    })
    .sort((a, b) => b.load.densityPercent - a.load.densityPercent || a.segment.id - b.segment.id),
);

const kept = new KeptRows(row, () => []);

/** How fast cars are on average, in percent of what they could be on empty roads. */
function flowPercent(roads: readonly Road[]): number {
  const cars = roads.reduce((sum, { load }) => sum + load.volumePerHour, 0);
  if (cars === 0) return 100;
  const shares = roads.map(({ load }) => (load.volumePerHour * load.speedKmh) / load.freeSpeedKmh);
  return (100 * shares.reduce((sum, share) => sum + share, 0)) / cars;
}

/** Roads by steps of density: `0-20` and so on. */
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
    position: position(middle({ start, end })),
  };
}
