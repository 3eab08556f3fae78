import { z } from "zod";
import type { Position, Problems, ServiceWish } from "../game.js";
import { middle, position } from "../geometry.js";
import { LIST, type ReadRoute } from "../read-route.js";
import type { SimulatedCity } from "../simulation/simulated-city.js";
import { type BuildingFlag, FLAG, problemMasks } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import { flagText } from "./buildings.js";
import { PROBLEM_LIMIT, paginate, problemNames, problemText } from "./listing.js";

/** Building flags that are listed as problems. */
const ALERT_FLAGS: readonly BuildingFlag[] = [
  "Abandoned",
  "BurnedDown",
  "Collapsed",
  "Flooded",
  "RoadAccessFailed",
];
const ALERT_MASK = ALERT_FLAGS.reduce((mask, flag) => mask | FLAG[flag], 0);

interface Trouble {
  readonly entityType: "building" | "netNode" | "netSegment";
  readonly id: number;
  readonly problems: Problems;
  readonly position: Position;
  /** Absent from nodes and segments. */
  readonly flags?: number;
}

/** Cached by combination of problems: few occur in thousands of rows. */
interface Fault {
  readonly names: readonly string[];
  count: number;
}

/** GET /state/problems: buildings, then nodes, then segments; `entityType` filters. Also missing services as `wishes`. */
export const problems: ReadRoute = {
  path: "/state/problems",
  label: "Read city problems",
  parameters: { ...LIST, entityType: z.enum(["building", "netNode", "netSegment"]).optional() },
  read: ({ city, query }) => {
    const entityType = query.text("entityType");
    const found = findTroubles(city).filter((each) => entityType === "" || each.entityType === entityType);
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    const faults = countFaults(found);
    const counts = new Map(faults.map(({ names, count }) => [names.join(", "), count]));
    const countsByProblem: Record<string, number> = {};
    for (const { names, count } of faults) {
      for (const name of names) countsByProblem[name] = (countsByProblem[name] ?? 0) + count;
    }
    return {
      ok: true,
      ...page,
      counts: Object.fromEntries(counts),
      countsByProblem,
      problems: rows.map(row),
      wishes: city.wishes().map(wishRow),
    };
  },
};

/** A missing service that the town expects or will expect soon. */
function wishRow({ place, ...wish }: ServiceWish): JsonObject {
  return { ...wish, position: position(place) };
}

function findTroubles(city: SimulatedCity): Trouble[] {
  const found: Trouble[] = [];
  for (const { id, problems: own, position: at, flags } of city.buildings()) {
    if (own.names.length === 0 && (flags & ALERT_MASK) === 0) continue;
    found.push({ entityType: "building", id, problems: own, position: at, flags });
  }
  for (const { id, problems: own, position: at } of city.nodes()) {
    if (own.names.length > 0) found.push({ entityType: "netNode", id, problems: own, position: at });
  }
  for (const { id, problems: own, start, end } of city.segments()) {
    if (own.names.length === 0) continue;
    found.push({ entityType: "netSegment", id, problems: own, position: middle({ start, end }) });
  }
  return found;
}

/** In the order of first encounter. */
function countFaults(troubles: readonly Trouble[]): Fault[] {
  const faults = new Map<string, Fault>();
  for (const trouble of troubles) {
    const key = `${problemText(trouble.problems)}|${(trouble.flags ?? 0) & ALERT_MASK}`;
    const known = faults.get(key);
    if (known) known.count++;
    else faults.set(key, { names: namesOf(trouble), count: 1 });
  }
  return [...faults.values()];
}

function namesOf({ problems: own, flags }: Trouble): string[] {
  return [...problemNames(own), ...alertsOf(flags ?? 0)];
}

function alertsOf(flags: number): BuildingFlag[] {
  return ALERT_FLAGS.filter((flag) => (flags & FLAG[flag]) !== 0);
}

function row(trouble: Trouble): JsonObject {
  const { entityType, id, problems: own, position: at, flags } = trouble;
  const names = namesOf(trouble);
  const [problem1Raw, problem2Raw] = problemMasks(own.names, own.severity);
  const isAny = own.names.length > 0;
  return {
    entityType,
    id,
    problems: names.join(", "),
    problemNames: names,
    problem1Raw,
    problem2Raw,
    ...(flags === undefined ? {} : { buildingFlags: flagText(flags), buildingFlagsRaw: flags }),
    isMajor: isAny && own.severity === "major",
    isFatal: isAny && own.severity === "fatal",
    position: position(at),
  };
}
