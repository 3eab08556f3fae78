import { z } from "zod";
import { position } from "../places.js";
import type { CommandRoute } from "../route.js";
import { flag, number, optionalNumber, parseFields, point, shown } from "../wire/fields.js";

const FIELDS = z.object({
  dryRun: flag(false),
  id: number(0),
  position: point,
  angleDegrees: optionalNumber,
});

/** POST /commands/move-building: the same prefab at the new place, under a new id. */
export const moveBuilding: CommandRoute = {
  path: "/commands/move-building",
  label: ({ id }) => `Move building #${shown(id, "0")}`,
  run: (city, body) => {
    const fields = parseFields(FIELDS, body);
    const { prefab, moved } = city.apply({ type: "move-building", ...fields });
    const { dryRun, id } = fields;
    const buildingPrefab = prefab.name;
    if (moved === null)
      return { ok: true, dryRun, message: "The building can be moved.", id, buildingPrefab };
    const { newBuildingId } = moved;
    const message = `Building ${id} is now building ${newBuildingId}.`;
    const ids = { oldBuildingId: id, newBuildingId };
    return { ok: true, dryRun, message, ...ids, buildingPrefab, position: position(moved.position) };
  },
};
