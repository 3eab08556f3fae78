/** The lists of growables and facilities. */

import { z } from "zod";
import { LIST_PARAMETERS, type ReadRoute, SERVICE_PARAMETER } from "../read-route.js";
import { isAbandoned, isActive, isGrowable } from "../simulation/fabric/buildings.js";
import type { Building } from "../simulation/state/entities.js";
import { FACILITY_SERVICES, flagText, levelName, type Service } from "../terms.js";
import { RowCache } from "../wire/answers.js";
import { ENTITY_LIMIT, paginate, problemText, sumBy, tally } from "./listing.js";

const FACILITY: ReadonlySet<Service> = new Set(FACILITY_SERVICES);

/** Whether a building is a service building; pipe junctions do not count. */
export function isFacility({ prefab }: Building): boolean {
  return FACILITY.has(prefab.service) && !prefab.helper;
}

/** Counts per prefab first, because thousands of buildings share few prefabs. */
function countByService(buildings: readonly Building[]) {
  const counts = tally(buildings, ({ prefab }) => prefab);
  return {
    countsByService: sumBy(counts, ({ service }) => service),
    countsBySubService: sumBy(counts, ({ service, subService }) => `${service}/${subService}`),
  };
}

function rowOf(building: Building) {
  const { id, prefab, flags, angleDegrees, problems, position } = building;
  const { displayName, service, subService, width, length } = prefab;
  return {
    ...{ id, prefab: prefab.name, displayName, active: isActive(building), flags: flagText(flags) },
    ...{ service, subService, width, length, angleDegrees, problems: problemText(problems), position },
  };
}

/**
 * GET /state/facilities: service buildings, or the buildings of one `service`. `includeMapObjects=true` also
 * lists other objects of the map, such as pipe junctions.
 */
export const facilities: ReadRoute = {
  path: "/state/facilities",
  label: "Read facilities",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER, includeMapObjects: z.boolean().default(false) },
  read: ({ world, query }) => {
    const service = query.text("service");
    const includeMapObjects = query.flag("includeMapObjects", false);
    const isListed = (building: Building) => {
      if (service === "") return includeMapObjects || isFacility(building);
      return building.prefab.service === service && (includeMapObjects || !building.prefab.helper);
    };
    const found = world.buildings.all().filter(isListed);
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    const filters = { serviceFilter: service, includeMapObjects };
    return { ...page, ...filters, ...countByService(found), facilities: rows.map(facilityRow) };
  },
};

export function facilityRow(building: Building) {
  const { level, blocked } = building.prefab;
  return { ...rowOf(building), blockedAsset: blocked, level, levelName: levelName(level) };
}

/** GET /state/growables: homes, shops, industry and offices. */
export const growables: ReadRoute = {
  path: "/state/growables",
  label: "Read growable buildings",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER },
  read: ({ world, query }) => {
    const service = query.text("service");
    const isListed = ({ prefab }: Building) => service === "" || prefab.service === service;
    const found = world.buildings.all().filter((building) => isGrowable(building) && isListed(building));
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    const counts = countByService(found);
    return { ...page, serviceFilter: service, ...counts, growables: growableRows.write(rows) };
  },
};

const growableRows = new RowCache(growableRow, ({ prefab, flags, problems }: Building) => [
  prefab,
  flags,
  problems,
]);

function growableRow(building: Building) {
  const abandoned = isAbandoned(building);
  return { ...rowOf(building), abandoned, level: levelName(building.prefab.level) };
}

export const BUILDING_READS = [facilities, growables];
