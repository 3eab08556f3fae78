/** Commands on buildings: placing, moving, switching, and clearing them away. */
import { z } from "zod";
import { position } from "../geometry.js";
import type { CommandRoute } from "../route.js";
import { flag, number, optionalNumber, parseFields, point, shown, text } from "../wire/requests.js";

const PLACE_FIELDS = z.object({
  dryRun: flag(false),
  buildingPrefab: text(""),
  position: point,
  angleDegrees: number(0),
});

export const placeBuilding: CommandRoute = {
  path: "/commands/place-building",
  fields: PLACE_FIELDS,
  label: ({ buildingPrefab }) => `Place building ${shown(buildingPrefab, "building")}`,
  run: (city, body) => {
    const { buildingPrefab, ...fields } = parseFields(PLACE_FIELDS, body);
    const result = city.apply({ type: "place-building", prefab: buildingPrefab, ...fields });
    const { prefab, cost: constructionCost, buildingId } = result;
    const { dryRun } = fields;
    if (buildingId === null) {
      return { ok: true, dryRun, message: "The building can be placed.", buildingPrefab, constructionCost };
    }
    const { service, subService } = prefab;
    const message = `Placed building ${buildingId}.`;
    return { ok: true, dryRun, message, buildingId, buildingPrefab, service, subService, constructionCost };
  },
};

const MOVE_FIELDS = z.object({
  dryRun: flag(false),
  id: number(0),
  position: point,
  angleDegrees: optionalNumber,
});

/** POST /commands/move-building: the same prefab at the new place, under a new id. */
export const moveBuilding: CommandRoute = {
  path: "/commands/move-building",
  fields: MOVE_FIELDS,
  label: ({ id }) => `Move building #${shown(id, "0")}`,
  run: (city, body) => {
    const fields = parseFields(MOVE_FIELDS, body);
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

const ACTIVE_FIELDS = z.object({ id: number(0), active: flag(true) });

/** POST /commands/set-building-active: always acts, there is no dry run. */
export const setBuildingActive: CommandRoute = {
  path: "/commands/set-building-active",
  fields: ACTIVE_FIELDS,
  label: ({ id }) => `Set building active #${shown(id, "0")}`,
  run: (city, body) => {
    const { id, active } = parseFields(ACTIVE_FIELDS, body);
    const { prefab, ...flags } = city.apply({ type: "set-building-active", id, active });
    return {
      ok: true,
      dryRun: false,
      message: `Building ${id} is switched ${active ? "on" : "off"}.`,
      id,
      active,
      prefab: prefab.name,
      beforeFlags: flags.beforeFlags.join(", "),
      afterFlags: flags.afterFlags.join(", "),
    };
  },
};

const EMPTYING_FIELDS = z.object({ id: number(0), emptying: flag(true) });

/** POST /commands/set-building-emptying: a landfill or cemetery takes in nothing more and is emptied. */
export const setBuildingEmptying: CommandRoute = {
  path: "/commands/set-building-emptying",
  fields: EMPTYING_FIELDS,
  label: ({ id }) => `Set building emptying #${shown(id, "0")}`,
  run: (city, body) => {
    const { id, emptying } = parseFields(EMPTYING_FIELDS, body);
    const { prefab, afterFlags } = city.apply({ type: "set-building-emptying", id, emptying });
    const message = `Building ${id} ${emptying ? "is being emptied" : "takes in again"}.`;
    return {
      ok: true,
      dryRun: false,
      message,
      id,
      emptying,
      prefab: prefab.name,
      afterFlags: afterFlags.join(", "),
    };
  },
};

/** POST /commands/disable-blocked-assets: switches off the known broken asset family. */
export const disableBlockedAssets: CommandRoute = {
  path: "/commands/disable-blocked-assets",
  fields: z.object({}),
  label: () => "Disable blocked assets",
  run: (city) => {
    const { assets } = city.apply({ type: "disable-blocked-assets" });
    const disabled = assets.filter(({ wasEnabled, isEnabled }) => wasEnabled && !isEnabled).length;
    const rows = assets.map((asset) => ({ ...asset }));
    const message = `${disabled} of ${assets.length} assets disabled.`;
    return { ok: true, dryRun: false, message, total: assets.length, disabled, assets: rows };
  },
};

const BULLDOZE_FIELDS = z.object({
  dryRun: flag(false),
  entityType: text(""),
  id: number(0),
  keepNodes: flag(false),
});

/** POST /commands/bulldoze: a building, a segment or a node. */
export const bulldoze: CommandRoute = {
  path: "/commands/bulldoze",
  fields: BULLDOZE_FIELDS,
  label: ({ entityType, id }) => `Bulldoze ${shown(entityType, "entity")} #${shown(id, "0")}`,
  run: (city, body) => {
    const fields = parseFields(BULLDOZE_FIELDS, body);
    const { entityType, id } = city.apply({ type: "bulldoze", ...fields });
    const { dryRun, keepNodes } = fields;
    const message = `${entityType} ${id} ${dryRun ? "can be" : "was"} removed.`;
    const choice = entityType === "netSegment" ? { keepNodes } : {};
    return { ok: true, dryRun, message, entityType, id, ...choice };
  },
};
