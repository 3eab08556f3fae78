import { z } from "zod";
import { middle, type Position } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute } from "../read-route.js";
import { cheapestProvider, priceOf } from "../simulation/life/affordability.js";
import { closedForDebt, reopeningBalance } from "../simulation/life/debt.js";
import { missingServicesInPieces } from "../simulation/life/expectations.js";
import { weeklySurplus } from "../simulation/life/finance.js";
import type { Building, Problems } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { inSteps } from "../steps.js";
import { FLAG, flagText, problemMasks, words } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import { countBy, PROBLEM_LIMIT, paginate, problemNames, problemText } from "./listing.js";

/** Building flags that GET /state/problems reports as problems. */
const ALERT_FLAGS = words("Abandoned BurnedDown Collapsed Flooded RoadAccessFailed");
const ALERT_MASK = ALERT_FLAGS.reduce((mask, flag) => mask | FLAG[flag], 0);

interface AffectedEntity {
  readonly entityType: "building" | "netNode" | "netSegment";
  readonly id: number;
  readonly problems: Problems;
  readonly position: Position;
  /** Flags of a building; absent for nodes and segments. */
  readonly flags?: number;
}

/**
 * GET /state/problems: problems of buildings, nodes and segments, in this order; services that are closed for debt, in
 * the order in which they reopen; and missing services as `wishes`, with the price of a building that provides them.
 */
export const problems: ReadRoute = {
  path: "/state/problems",
  label: "Read city problems",
  parameters: { ...LIST_PARAMETERS, entityType: z.enum(["building", "netNode", "netSegment"]).optional() },
  read: async ({ world, query }) => {
    const entityType = query.text("entityType");
    const found = findAffected(world).filter((each) => entityType === "" || each.entityType === entityType);
    const { page, rows } = paginate(found, query, PROBLEM_LIMIT);
    const counts = countBy(found, textOf);
    const countsByProblem: Record<string, number> = {};
    for (const [text, count] of Object.entries(counts)) {
      for (const name of text.split(", ")) countsByProblem[name] = (countsByProblem[name] ?? 0) + count;
    }
    const wishes = await inSteps(missingServicesInPieces(world));
    const surplus = weeklySurplus(world);
    return {
      ...page,
      counts,
      countsByProblem,
      problems: rows.map((each) => row(world, each)),
      closedForDebt: closedForDebt(world).map((building) => closedRow(world, building)),
      wishes: wishes.map(({ place, ...wish }) => {
        return { ...wish, position: place, price: priceOf(world, cheapestProvider(wish.service), surplus) };
      }),
    };
  },
};

function closedRow(world: World, building: Building): JsonObject {
  const { id, prefab, position } = building;
  const { displayName, service } = prefab;
  const reopensAtBalance = reopeningBalance(world, building);
  return { id, prefab: prefab.name, displayName, service, position, reopensAtBalance };
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

function namesOf({ problems: own, flags = 0 }: AffectedEntity): string[] {
  return [...problemNames(own), ...ALERT_FLAGS.filter((flag) => (flags & FLAG[flag]) !== 0)];
}

function textOf(entity: AffectedEntity): string {
  const { problems: own, flags = 0 } = entity;
  return (flags & ALERT_MASK) === 0 ? problemText(own) : namesOf(entity).join(", ");
}

function row(world: World, entity: AffectedEntity): JsonObject {
  const { entityType, id, problems: own, position: at, flags } = entity;
  const names = namesOf(entity);
  const [problem1Raw, problem2Raw] = problemMasks(own.names, own.severity);
  const isAny = own.names.length > 0;
  const turnedOff = entityType === "building" && own.names.includes("TurnedOff");
  const reason = world.buildings.get(id)?.closedForDebt ? "debt" : "command";
  return {
    entityType,
    id,
    problems: names.join(", "),
    problemNames: names,
    problem1Raw,
    problem2Raw,
    ...(flags === undefined ? {} : { buildingFlags: flagText(flags), buildingFlagsRaw: flags }),
    ...(turnedOff ? { turnedOffBy: reason } : {}),
    isMajor: isAny && own.severity === "major",
    isFatal: isAny && own.severity === "fatal",
    position: at,
  };
}
