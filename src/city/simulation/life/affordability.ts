/** Whether a city can pay for a building, by its price and its upkeep. */
import { BUILDING_PREFABS, type BuildingPrefab, type Coverage } from "../catalogue/building-prefabs.js";
import type { World } from "../state/world.js";
import { stateAid, weeklyUpkeep } from "./taxes.js";

/** A city that loses money each week can pay for a building if its money then lasts for this time. */
const LASTING_WEEKS = 52;

export type Price = {
  readonly buildingPrefab: string;
  readonly constructionCost: number;
  /** The city's part of the upkeep. */
  readonly upkeepPerWeek: number;
  /** What the city keeps in a week without the building. */
  readonly weeklySurplus: number;
  /** Weeks for which the city's money lasts with the building; null if it keeps money. */
  readonly moneyLastsWeeks: number | null;
  /** False if the city cannot pay the price, or would run out of money within a year. */
  readonly isAffordable: boolean;
};

export function priceOf(world: World, prefab: BuildingPrefab, weeklySurplus: number): Price {
  const { name: buildingPrefab, cost: constructionCost, service } = prefab;
  const upkeepPerWeek = weeklyUpkeep(world, prefab) * (1 - stateAid(world));
  const rest = world.ledger.balanceCents / 100 - constructionCost;
  const loss = upkeepPerWeek - weeklySurplus;
  const moneyLastsWeeks = loss > 0 ? Math.max(rest / loss, 0) : null;
  // Nobody pays taxes without power and water.
  const isVital = service === "Electricity" || service === "Water";
  const lasts =
    upkeepPerWeek === 0 || isVital || moneyLastsWeeks === null || moneyLastsWeeks >= LASTING_WEEKS;
  const isAffordable = world.unlimitedMoney || (rest >= 0 && lasts);
  return { buildingPrefab, constructionCost, upkeepPerWeek, weeklySurplus, moneyLastsWeeks, isAffordable };
}

const CHEAPEST = new Map<string, BuildingPrefab>();
for (const prefab of BUILDING_PREFABS) {
  const kind = prefab.civic?.coverage?.kind;
  const known = CHEAPEST.get(kind ?? "");
  if (kind && prefab.service !== "Monument" && (!known || prefab.cost < known.cost))
    CHEAPEST.set(kind, prefab);
}

/** The cheapest building that provides a service. */
export function cheapestProvider(kind: Coverage): BuildingPrefab {
  return CHEAPEST.get(kind) as BuildingPrefab;
}
