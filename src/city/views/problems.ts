import { z } from "zod";
import { copyPosition, middle, type Position } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { type MissingService, missingServicesInPieces } from "../simulation/life/expectations.js";
import type { Problems } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { inSteps } from "../steps.js";
import { type BuildingFlag, FLAG, flagText, problemMasks } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import { PROBLEM_LIMIT, paginate, problemNames, problemText } from "./listing.js";

/** Building flags that GET /state/problems reports as problems. */
const ALERT_FLAGS: readonly BuildingFlag[] = [
  "Abandoned",
  "BurnedDown",
  "Collapsed",
  "Flooded",
  "RoadAccessFailed",
];
const ALERT_MASK = ALERT_FLAGS.reduce((mask, flag) => mask | FLAG[flag], 0);

interface AffectedEntity {
  readonly entityType: "building" | "netNode" | "netSegment";
  readonly id: number;
  readonly problems: Problems;
  readonly position: Position;
  /** Flags of a building; absent for nodes and segments. */
  readonly flags?: number;
}

/** Number of entities with the same combination of problems. */
interface ProblemCount {
  readonly names: readonly string[];
  count: number;
}

/** GET /state/problems: problems of buildings, nodes and segments, in this order, and missing services as `wishes`. */
export const problems: ReadRoute = {
  path: "/state/problems",
  label: "Read city problems",
  parameters: { ...LIST_PARAMETERS, entityType: z.enum(["building", "netNode", "netSegment"]).optional() },
  read: async ({ world, query }) => {
    const entityType = query.text("entityType");
    const found = findAffected(world).filter((each) => entityType === "" || each.entityType === entityType);
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    const problemCounts = countProblems(found);
    const counts = new Map(problemCounts.map(({ names, count }) => [names.join(", "), count]));
    const countsByProblem: Record<string, number> = {};
    for (const { names, count } of problemCounts) {
      for (const name of names) countsByProblem[name] = (countsByProblem[name] ?? 0) + count;
    }
    return {
      ...page,
      counts: Object.fromEntries(counts),
      countsByProblem,
      problems: rows.map(row),
      wishes: (await inSteps(missingServicesInPieces(world))).map(wishRow),
    };
  },
};

/** A missing service that the town expects or will expect soon. */
function wishRow({ place, ...wish }: MissingService): JsonObject {
  return { ...wish, position: copyPosition(place) };
}

function findAffected(world: World): AffectedEntity[] {
  const found: AffectedEntity[] = [];
  for (const { id, problems: own, position: at, flags } of world.buildings.all()) {
    if (own.names.length === 0 && (flags & ALERT_MASK) === 0) continue;
    found.push({ entityType: "building", id, problems: own, position: at, flags });
  }
  for (const { id, problems: own, position: at } of world.nodes.all()) {
    if (own.names.length > 0) found.push({ entityType: "netNode", id, problems: own, position: at });
  }
  for (const { id, problems: own, start, end } of world.segments.all()) {
    if (own.names.length === 0) continue;
    found.push({ entityType: "netSegment", id, problems: own, position: middle({ start, end }) });
  }
  return found;
}

/** Counts combinations of problems, in the order of first occurrence. */
function countProblems(affected: readonly AffectedEntity[]): ProblemCount[] {
  const problemCounts = new Map<string, ProblemCount>();
  for (const entity of affected) {
    const key = `${problemText(entity.problems)}|${(entity.flags ?? 0) & ALERT_MASK}`;
    const known = problemCounts.get(key);
    if (known) known.count++;
    else problemCounts.set(key, { names: namesOf(entity), count: 1 });
  }
  return [...problemCounts.values()];
}

function namesOf({ problems: own, flags }: AffectedEntity): string[] {
  return [...problemNames(own), ...alertsOf(flags ?? 0)];
}

function alertsOf(flags: number): BuildingFlag[] {
  return ALERT_FLAGS.filter((flag) => (flags & FLAG[flag]) !== 0);
}

function row(entity: AffectedEntity): JsonObject {
  const { entityType, id, problems: own, position: at, flags } = entity;
  const names = namesOf(entity);
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
    position: copyPosition(at),
  };
}
