import { z } from "zod";
import { findBuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { createBuilding } from "../simulation/fabric/buildings.js";
import { requireFunds } from "../simulation/life/finance.js";
import { reportOpening } from "../simulation/life/messages.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { SUGGESTION_RADIUS_METERS, suggestPlaces } from "./place-suggestions.js";
import { requirePlaceable } from "./placement.js";
import { requireOnMap, requirePrefab } from "./requirements.js";
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
  act: ({ world }, { dryRun, buildingPrefab, position, angleDegrees, suggest, strict }) => {
    const prefab = requirePrefab(findBuildingPrefab, "building", buildingPrefab);
    if (suggest) {
      requireOnMap(position);
      return { prefab, buildingId: null, faults: [], suggestions: suggestPlaces(world, prefab, position) };
    }
    requirePlaceable(world, prefab, position, angleDegrees);
    const faults = siteFaults(world, { prefab, position, angleDegrees });
    rejectFaultsIfStrict(faults, strict);
    requireFunds(world, prefab.cost, `A ${prefab.displayName}`);
    if (dryRun) return { prefab, buildingId: null, faults, suggestions: null };
    const { id: buildingId } = createBuilding(world, prefab, position, angleDegrees);
    world.ledger.book("Construction", prefab.cost);
    reportOpening(world, prefab);
    return { prefab, buildingId, faults, suggestions: null };
  },
  reply: ({ prefab, buildingId, faults, suggestions }, { dryRun, buildingPrefab }) => {
    const { service, subService, cost: constructionCost } = prefab;
    if (suggestions) {
      const message = `${suggestions.length} free places lie within ${SUGGESTION_RADIUS_METERS} m.`;
      return { ok: true, dryRun: true, message, buildingPrefab, constructionCost, suggestions };
    }
    const warnings = faults.length > 0 ? { warnings: faults } : {};
    if (buildingId === null) {
      const message = "The building can be placed.";
      return { ok: true, dryRun, message, buildingPrefab, constructionCost, ...warnings };
    }
    const message = `Placed building ${buildingId}.`;
    const ids = { buildingId, buildingPrefab, service, subService };
    return { ok: true, dryRun, message, ...ids, constructionCost, ...warnings };
  },
});
