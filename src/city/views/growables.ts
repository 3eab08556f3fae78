import { LIST_PARAMETERS, type ReadRoute, SERVICE_PARAMETER } from "../read-route.js";
import { isAbandoned, isActive, isGrowable } from "../simulation/fabric/buildings.js";
import type { Building } from "../simulation/state/entities.js";
import { flagText, levelName } from "../terms.js";
import { RowCache } from "../wire/answers.js";
import { countByService, lastBuildingColumns } from "./buildings.js";
import { ENTITY_LIMIT, paginate } from "./listing.js";

/** GET /state/growables: homes, shops, industry and offices. */
export const growables: ReadRoute = {
  path: "/state/growables",
  label: "Read growable buildings",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER },
  read: ({ world, query }) => {
    const service = query.text("service");
    const found = world.buildings
      .all()
      .filter((building) => isGrowable(building) && (service === "" || building.prefab.service === service));
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    return {
      ...page,
      serviceFilter: service,
      ...countByService(found),
      growables: rowCache.write(rows),
    };
  },
};

const rowCache = new RowCache(row, ({ prefab, flags, problems }: Building) => [prefab, flags, problems]);

function row(building: Building) {
  const { id, prefab, flags } = building;
  return {
    id,
    prefab: prefab.name,
    displayName: prefab.displayName,
    active: isActive(building),
    abandoned: isAbandoned(building),
    flags: flagText(flags),
    service: prefab.service,
    subService: prefab.subService,
    level: levelName(prefab.level),
    ...lastBuildingColumns(building),
  };
}
