/** Takes a snapshot of a city, and lists the changes since the snapshot. */

import { isAbandoned, isGrowable } from "../simulation/fabric/buildings.js";
import { shownDemand } from "../simulation/life/demand.js";
import { totalsOf } from "../simulation/state/economy.js";
import type { Building } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import type { Level } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import { countBy } from "./listing.js";

/** Maximum length of each list. The counts include entities beyond this maximum. */
const MAX_ROWS = 20;

/** The state of a city at one moment. `changesSince` compares it with the current state. */
export class CitySnapshot {
  readonly #figures;
  readonly #problems: EntitiesByProblem;
  /** Keys are the building objects, because ids are reused. */
  readonly #growables: ReadonlyMap<Building, { readonly level: Level; readonly abandoned: boolean }>;
  readonly #messages;
  readonly #lastSample;

  constructor(private readonly world: World) {
    this.#figures = figuresOf(world);
    this.#problems = problemsOf(world);
    this.#messages = new Set(world.board.messages);
    this.#lastSample = world.statistics.samples.at(-1);
    this.#growables = new Map(
      world.buildings
        .all()
        .filter(isGrowable)
        .map((building) => [building, { level: building.prefab.level, abandoned: isAbandoned(building) }]),
    );
  }

  /** Whether a building, node or segment got this problem since the snapshot; "any" matches every problem. */
  hasBegun(problem: string): boolean {
    for (const [name, now] of problemsOf(this.world)) {
      if (problem !== "any" && problem !== name) continue;
      const before = this.#problems.get(name);
      for (const place of now) if (!before?.has(place)) return true;
    }
    return false;
  }

  changesSince(): JsonObject {
    const [before, after] = [this.#figures, figuresOf(this.world)];
    const samples = this.world.statistics.samples;
    const weeks = samples.slice(this.#lastSample ? samples.indexOf(this.#lastSample) + 1 : 0);
    const events = (["births", "deaths", "arrivals", "departures"] as const).map((event) => {
      const whole = weeks.reduce((sum, week) => sum + week[event], 0);
      return [event, whole + after.week[event] - before.week[event]];
    });
    return {
      citizens: { before: before.citizens, after: after.citizens, ...Object.fromEntries(events) },
      money: {
        before: before.balance,
        after: after.balance,
        income: after.flows.income - before.flows.income,
        expenses: after.flows.expenses - before.flows.expenses,
      },
      demand: shownDemand(this.world),
      buildings: this.#buildingsSince(),
      problems: this.#problemsSince(),
      messages: this.world.board.messages
        .filter((message) => !this.#messages.has(message))
        .slice(-MAX_ROWS)
        .map(({ senderName, text }) => ({ senderName, text })),
    };
  }

  #buildingsSince(): JsonObject {
    const now = this.world.buildings.all().filter(isGrowable);
    const standing = new Set<Building>(now);
    const grown = now.filter((building) => !this.#growables.has(building));
    const earlier = (building: Building) => this.#growables.get(building);
    const abandoned = now.filter((each) => isAbandoned(each) && !(earlier(each)?.abandoned ?? false));
    const levels = (building: Building) =>
      building.prefab.level - (earlier(building)?.level ?? building.prefab.level);
    return {
      before: this.#growables.size,
      after: now.length,
      grown: {
        count: grown.length,
        byService: countBy(grown, ({ prefab }) => prefab.service),
        ...some(grown),
      },
      abandoned: { count: abandoned.length, ...some(abandoned) },
      reoccupied: now.filter((each) => earlier(each)?.abandoned && !isAbandoned(each)).length,
      removed: [...this.#growables.keys()].filter((each) => !standing.has(each)).length,
      levelUps: now.filter((each) => levels(each) > 0).length,
    };
  }

  #problemsSince(): JsonObject {
    const now = problemsOf(this.world);
    const began = onlyInFirst(now, this.#problems);
    const ended = onlyInFirst(this.#problems, now);
    return {
      began: began.map(([problem, places]) => ({ problem, ...placesOf(places) })),
      ended: ended.map(([problem, places]) => ({ problem, count: places.length })),
      standing: Object.fromEntries([...now].map(([name, places]) => [name, places.size])),
    };
  }
}

function some(buildings: readonly Building[]): JsonObject {
  const rows = buildings.slice(0, MAX_ROWS).map((building) => ({
    id: building.id,
    displayName: building.prefab.displayName,
    service: building.prefab.service,
    position: building.position,
  }));
  return { buildings: rows };
}

function figuresOf(world: World) {
  const { ledger, statistics } = world;
  return {
    citizens: world.citizens.size,
    balance: ledger.balanceCents / 100,
    flows: totalsOf(ledger.totals),
    week: { ...statistics.week },
  };
}

/** Maps each problem to the entities with the problem, such as `building 7`. */
function problemsOf({ buildings, nodes, segments }: World): EntitiesByProblem {
  const found = new Map<string, Set<string>>();
  for (const [kind, pool] of Object.entries({ building: buildings, netNode: nodes, netSegment: segments })) {
    for (const { id, problems } of pool.all()) {
      for (const name of problems.names) {
        const places = found.get(name) ?? new Set<string>();
        found.set(name, places.add(`${kind} ${id}`));
      }
    }
  }
  return found;
}

type EntitiesByProblem = ReadonlyMap<string, ReadonlySet<string>>;

function onlyInFirst(first: EntitiesByProblem, second: EntitiesByProblem) {
  return [...first].flatMap(([name, places]): [problem: string, places: string[]][] => {
    const own = [...places].filter((place) => !second.get(name)?.has(place));
    return own.length > 0 ? [[name, own]] : [];
  });
}

function placesOf(places: readonly string[]) {
  const rows = places.slice(0, MAX_ROWS).map((place) => {
    const [entityType = "", id] = place.split(" ");
    return { entityType, id: Number(id) };
  });
  return { count: places.length, entities: rows };
}
