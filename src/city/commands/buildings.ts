import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { type BuildingPrefab, findBuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { createBuilding, removeBuilding, switchBuilding } from "../simulation/fabric/buildings.js";
import { priceOf } from "../simulation/life/affordability.js";
import { requireFunds, weeklySurplus } from "../simulation/life/finance.js";
import { reportOpening } from "../simulation/life/messages.js";
import { stateAid } from "../simulation/life/taxes.js";
import type { World } from "../simulation/state/world.js";
import { FLAG, flagText } from "../terms.js";
import { fieldText, flag, groundPoint, number, optionalNumber, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { recordBuilding } from "./journal.js";
import { requireBuilding, requireOnMap, requirePlaceable, requirePrefab } from "./requirements.js";
import { rejectFaultsIfStrict, SUGGESTION_RADIUS_METERS, siteFaults, suggestPlaces } from "./sites.js";

export const placeBuilding = defineCommand({
  path: "/commands/place-building",
  summary: "Places a building, or lists free places for it with `suggest`.",
  label: ({ buildingPrefab }) => `Place building ${fieldText(buildingPrefab, "building")}`,
  fields: z.object({
    dryRun: flag(false),
    buildingPrefab: text(""),
    position: groundPoint,
    angleDegrees: number(0),
    suggest: flag(false).describe("Only lists free places near the position."),
    strict: flag(false).describe("Refuses a place with faults, which are warnings otherwise."),
  }),
  act: (world, { dryRun, buildingPrefab, position, angleDegrees, suggest, strict }) => {
    const prefab = requirePrefab(findBuildingPrefab, "building", buildingPrefab);
    const { service, subService, cost: constructionCost } = prefab;
    if (suggest) {
      requireOnMap(position);
      const suggestions = suggestPlaces(world, prefab, position);
      const message = `${suggestions.length} free places lie within ${SUGGESTION_RADIUS_METERS} m.`;
      return { dryRun: true, message, buildingPrefab, constructionCost, suggestions };
    }
    requirePlaceable(world, prefab, position);
    const faults = siteFaults(world, { prefab, position, angleDegrees });
    rejectFaultsIfStrict(faults, strict);
    requireFunds(world, constructionCost, `A ${prefab.displayName}`);
    const warnings = [...faults, ...upkeepWarnings(world, prefab)];
    if (dryRun) return { message: "The building can be placed.", buildingPrefab, constructionCost, warnings };
    const building = createBuilding(world, prefab, position, angleDegrees);
    const { id: buildingId } = building;
    recordBuilding(world, building, constructionCost);
    world.ledger.book("Construction", constructionCost);
    reportOpening(world, prefab);
    const ids = { buildingId, buildingPrefab, service, subService };
    return { message: `Placed building ${buildingId}.`, ...ids, constructionCost, warnings };
  },
});

/** Warns if the city would lose money each week. A city without citizens is expected to. */
function* upkeepWarnings(world: World, prefab: BuildingPrefab): Generator<string> {
  if (world.unlimitedMoney || world.citizens.size === 0) return;
  const {
    upkeepPerWeek,
    weeklySurplus: keeps,
    moneyLastsWeeks,
  } = priceOf(world, prefab, weeklySurplus(world));
  if (upkeepPerWeek === 0 || moneyLastsWeeks === null) return;
  const now = keeps < 0 ? `already loses ${(-keeps).toFixed(0)}` : `keeps ${keeps.toFixed(0)}`;
  const loss = (upkeepPerWeek - keeps).toFixed(0);
  const aid = stateAid(world);
  // Lists of prefabs state the whole upkeep.
  const part = aid > 0 ? ` (the state pays ${(aid * 100).toFixed(0)} %)` : "";
  yield `The building costs ${upkeepPerWeek.toFixed(0)} a week${part} and the city ${now}: it would lose ${loss} a week, and its money lasts ${moneyLastsWeeks.toFixed(0)} weeks`;
}

/** Cost of moving a building, as a share of its price. */
const RELOCATION_SHARE = 0.2;

export const moveBuilding = defineCommand({
  path: "/commands/move-building",
  summary: "Builds the same prefab at the new place, then removes the old one; the id changes.",
  label: ({ id }) => `Move building #${fieldText(id, "0")}`,
  fields: z.object({
    dryRun: flag(false),
    id: number(0),
    position: groundPoint,
    angleDegrees: optionalNumber.describe("Null keeps the angle."),
    strict: flag(false).describe("Refuses a place with faults, which are warnings otherwise."),
  }),
  act: (world, fields) => {
    const old = requireBuilding(world, fields.id);
    const { prefab } = old;
    const angleDegrees = fields.angleDegrees ?? old.angleDegrees;
    requirePlaceable(world, prefab, fields.position);
    const warnings = siteFaults(world, { prefab, position: fields.position, angleDegrees }, old);
    rejectFaultsIfStrict(warnings, fields.strict);
    const cost = RELOCATION_SHARE * prefab.cost;
    requireFunds(world, cost, `Moving a ${prefab.displayName}`);
    const { id } = old;
    const buildingPrefab = prefab.name;
    if (fields.dryRun) return { message: "The building can be moved.", id, buildingPrefab, warnings };
    const moved = createBuilding(world, prefab, fields.position, angleDegrees);
    Object.assign(moved, { stored: old.stored, fuel: old.fuel });
    world.ledger.book("Construction", cost);
    removeBuilding(world, old);
    const message = `Building ${id} is now building ${moved.id}.`;
    const ids = { oldBuildingId: id, newBuildingId: moved.id };
    return { message, ...ids, buildingPrefab, position: moved.position, warnings };
  },
});

export const setBuildingActive = defineCommand({
  path: "/commands/set-building-active",
  summary: "Switches a building on or off. There is no dry run.",
  label: ({ id }) => `Set building active #${fieldText(id, "0")}`,
  fields: z.object({ id: number(0), active: flag(true) }),
  act: (world, { id, active }) => {
    const building = requireBuilding(world, id);
    const before = building.flags;
    building.closedForDebt = false;
    switchBuilding(building, active, world.frame);
    return {
      message: `Building ${id} is switched ${active ? "on" : "off"}.`,
      id,
      active,
      prefab: building.prefab.name,
      beforeFlags: flagText(before),
      afterFlags: flagText(building.flags),
    };
  },
});

export const setBuildingEmptying = defineCommand({
  path: "/commands/set-building-emptying",
  summary: "Starts or stops emptying a landfill or cemetery. While it is emptied, it accepts nothing.",
  label: ({ id }) => `Set building emptying #${fieldText(id, "0")}`,
  fields: z.object({ id: number(0), emptying: flag(true) }),
  act: (world, { id, emptying }) => {
    const building = requireBuilding(world, id);
    const { prefab, flags } = building;
    if (prefab.civic?.storage === undefined) {
      throw new RefusedError(`Building ${id}, a ${prefab.displayName}, has no storage to empty`);
    }
    building.flags = emptying ? flags | FLAG.Downgrading : flags & ~FLAG.Downgrading;
    const message = `Building ${id} ${emptying ? "is being emptied" : "is no longer being emptied"}.`;
    return { message, id, emptying, prefab: prefab.name, afterFlags: flagText(building.flags) };
  },
});

export const BUILDING_COMMANDS = [moveBuilding, placeBuilding, setBuildingActive, setBuildingEmptying];
