import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, number, parseFields, point, shown, text } from "../wire/fields.js";

const FIELDS = z.object({
  dryRun: flag(false),
  buildingPrefab: text(""),
  position: point,
  angleDegrees: number(0),
});

/** POST /commands/place-building */
export const placeBuilding: CommandRoute = {
  path: "/commands/place-building",
  label: ({ buildingPrefab }) => `Place building ${shown(buildingPrefab, "building")}`,
  run: (city, body) => {
    const { dryRun, buildingPrefab, position, angleDegrees } = parseFields(FIELDS, body);
    const command = {
      type: "place-building",
      dryRun,
      prefab: buildingPrefab,
      position,
      angleDegrees,
    } as const;
    const { prefab, buildingId } = city.apply(command);
    if (buildingId === null)
      return { ok: true, dryRun, message: "The building can be placed.", buildingPrefab };
    const { service, subService } = prefab;
    const message = `Placed building ${buildingId}.`;
    return { ok: true, dryRun, message, buildingId, buildingPrefab, service, subService };
  },
};
