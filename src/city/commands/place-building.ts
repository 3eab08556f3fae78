import { z } from "zod";
import { findBuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { createBuilding } from "../simulation/fabric/buildings.js";
import { requireFunds } from "../simulation/life/finance.js";
import { reportOpening } from "../simulation/life/messages.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { SUGGESTION_RADIUS_METERS, suggestPlaces } from "./place-suggestions.js";
import { requireOnMap, requirePlaceable, requirePrefab } from "./requirements.js";
import { rejectFaultsIfStrict, siteFaults } from "./site-faults.js";

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
    const warnings = siteFaults(world, { prefab, position, angleDegrees });
    rejectFaultsIfStrict(warnings, strict);
    requireFunds(world, constructionCost, `A ${prefab.displayName}`);
    if (dryRun) return { message: "The building can be placed.", buildingPrefab, constructionCost, warnings };
    const { id: buildingId } = createBuilding(world, prefab, position, angleDegrees);
    world.ledger.book("Construction", constructionCost);
    reportOpening(world, prefab);
    const ids = { buildingId, buildingPrefab, service, subService };
    return { message: `Placed building ${buildingId}.`, ...ids, constructionCost, warnings };
  },
});
