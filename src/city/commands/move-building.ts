import { z } from "zod";
import { createBuilding, removeBuilding } from "../simulation/fabric/buildings.js";
import { requireFunds } from "../simulation/life/finance.js";
import { fieldText, flag, groundPoint, number, optionalNumber } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireBuilding, requirePlaceable } from "./requirements.js";
import { rejectFaultsIfStrict, siteFaults } from "./site-faults.js";

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
