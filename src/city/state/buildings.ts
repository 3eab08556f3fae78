/** Categories of buildings, columns that all building lists share, and the list of facilities. */
import { z } from "zod";
import type { Building } from "../game.js";
import { position } from "../geometry.js";
import { LIST, type ReadRoute, SERVICE } from "../read-route.js";
import { FACILITY_SERVICES, FLAG, flagNames, GROWABLE_SERVICES, levelName, type Service } from "../terms.js";
import { ENTITY_LIMIT, paginate, problemText, sumBy, tally } from "./listing.js";

const FACILITY: ReadonlySet<Service> = new Set(FACILITY_SERVICES);
const GROWABLE: ReadonlySet<Service> = new Set(GROWABLE_SERVICES);

/** Whether a building is a service building; pipe junctions do not count. */
export function isFacility({ prefab }: Building): boolean {
  return FACILITY.has(prefab.service) && !prefab.helper;
}

export function isGrowable({ prefab }: Building): boolean {
  return GROWABLE.has(prefab.service);
}

export function isActive({ flags }: Building): boolean {
  return (flags & FLAG.Active) !== 0;
}

/** Whether a building is abandoned, collapsed or burned down. */
export function isRuin({ flags }: Building): boolean {
  return (flags & (FLAG.Abandoned | FLAG.BurnedDown | FLAG.Collapsed)) !== 0;
}

/** Counts per prefab first, because there are few prefabs and thousands of buildings. */
export function countServices(buildings: readonly Building[]) {
  const counts = tally(buildings, ({ prefab }) => prefab);
  return {
    countsByService: sumBy(counts, ({ service }) => service),
    countsBySubService: sumBy(counts, ({ service, subService }) => `${service}/${subService}`),
  };
}

/** Cache of flag texts by mask: thousands of rows share few combinations of flags. */
const FLAG_TEXTS = new Map<number, string>();

/** Flag names in bit order, joined. */
export function flagText(flags: number): string {
  const known = FLAG_TEXTS.get(flags);
  if (known !== undefined) return known;
  const text = flagNames(flags).join(", ");
  FLAG_TEXTS.set(flags, text);
  return text;
}

/** Size, place and problems: the last columns of every row. */
export function siteColumns(building: Building) {
  const { prefab, angleDegrees, problems } = building;
  return {
    width: prefab.width,
    length: prefab.length,
    angleDegrees,
    problems: problemText(problems),
    position: position(building.position),
  };
}

/** GET /state/facilities: service buildings, filtered by `service`; map objects on request. */
export const facilities: ReadRoute = {
  path: "/state/facilities",
  label: "Read facilities",
  parameters: { ...LIST, ...SERVICE, includeMapObjects: z.boolean().default(false) },
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
    return { ok: true, ...page, ...filters, ...countServices(found), facilities: rows.map(facilityRow) };
  },
};

export function facilityRow(building: Building) {
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
    ...siteColumns(building),
  };
}
