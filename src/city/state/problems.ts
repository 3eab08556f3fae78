import type { Building, City, Position, Problems } from "../game.js";
import { middle, position } from "../geometry.js";
import type { ReadRoute } from "../route.js";
import { type BuildingFlag, FLAG, problemMasks } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import { flagText } from "./buildings.js";
import { countBy, PROBLEM_LIMIT, paginate, problemNames } from "./listing.js";

/** Building states that are listed as if they were problems. */
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
  readonly names: readonly string[];
  readonly problems: Problems;
  readonly position: Position;
  /** Absent from nodes and segments. */
  readonly flags?: number;
}

/** GET /state/problems: buildings, then nodes, then segments, or with `entityType` one of these alone. */
export const problems: ReadRoute = {
  path: "/state/problems",
  label: "Read city problems",
  read: ({ city, query }) => {
    const entityType = query.text("entityType");
    const found = [...findTroubles(city)].filter(
      (each) => entityType === "" || each.entityType === entityType,
    );
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    return {
      ok: true,
      ...page,
      counts: countBy(found, ({ names }) => names.join(", ")),
      countsByProblem: countBy(
        found.flatMap(({ names }) => names),
        (name) => name,
      ),
      problems: rows.map(row),
    };
  },
};

function* findTroubles(city: City): Generator<Trouble> {
  for (const building of city.buildings()) {
    const { id, problems: own, position: at, flags } = building;
    if (own.names.length === 0 && (flags & ALERT_MASK) === 0) continue;
    const names = [...problemNames(own), ...alertsOf(building)];
    yield { entityType: "building", id, names, problems: own, position: at, flags };
  }
  for (const { id, problems: own, position: at } of city.nodes()) {
    if (own.names.length === 0) continue;
    yield { entityType: "netNode", id, names: problemNames(own), problems: own, position: at };
  }
  for (const { id, problems: own, start, end } of city.segments()) {
    if (own.names.length === 0) continue;
    const at = middle({ start, end });
    yield { entityType: "netSegment", id, names: problemNames(own), problems: own, position: at };
  }
}

function alertsOf({ flags }: Building): BuildingFlag[] {
  return ALERT_FLAGS.filter((flag) => (flags & FLAG[flag]) !== 0);
}

function row({ entityType, id, names, problems: own, position: at, flags }: Trouble): JsonObject {
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
