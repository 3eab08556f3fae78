import { isActive, isFacility } from "../building-kinds.js";
import type { Building } from "../game.js";
import type { ReadRoute } from "../route.js";
import { levelName } from "../terms.js";
import { countServices, flagText, siteOf } from "./building-rows.js";
import { ENTITY_LIMIT, paginate } from "./listing.js";

/** GET /state/facilities: service buildings; with `service` that service alone, with map objects everything. */
export const facilities: ReadRoute = {
  path: "/state/facilities",
  label: "Read facilities",
  read: ({ city, query }) => {
    const service = query.text("service");
    const includeMapObjects = query.flag("includeMapObjects", false);
    const isListed = (building: Building) => {
      if (service === "") return includeMapObjects || isFacility(building);
      return building.prefab.service === service && (includeMapObjects || !building.prefab.helper);
    };
    const found = city.buildings().filter(isListed);
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    const filters = { serviceFilter: service, includeMapObjects };
    return { ok: true, ...page, ...filters, ...countServices(found), facilities: rows.map(row) };
  },
};

function row(building: Building) {
  const { id, prefab, flags } = building;
  return {
    id,
    prefab: prefab.name,
    displayName: prefab.displayName,
    blockedAsset: prefab.blocked,
    active: isActive(building),
    flags: flagText(flags),
    service: prefab.service,
    subService: prefab.subService,
    level: prefab.level,
    levelName: levelName(prefab.level),
    ...siteOf(building),
  };
}
