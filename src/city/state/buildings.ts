/** Which buildings the bridge calls what, and what all building lists show of one. */
import type { Building } from "../game.js";
import { flagBit, flagNames, GROWABLE_SERVICES, type Service } from "../terms.js";
import { countBy, position, problemText } from "./listing.js";

const FACILITY_SERVICES: ReadonlySet<Service> = new Set<Service>([
  "Water",
  "Electricity",
  "Garbage",
  "HealthCare",
  "PoliceDepartment",
  "FireDepartment",
  "Education",
  "Disaster",
]);
const GROWABLE: ReadonlySet<Service> = new Set<Service>(GROWABLE_SERVICES);
const ACTIVE = flagBit("Active");

/** A building that serves the city, pipe junctions excluded. */
export function isFacility({ prefab }: Building): boolean {
  return FACILITY_SERVICES.has(prefab.service) && !prefab.helper;
}

export function isGrowable({ prefab }: Building): boolean {
  return GROWABLE.has(prefab.service);
}

export function countServices(buildings: readonly Building[]) {
  return {
    countsByService: countBy(buildings, ({ prefab }) => prefab.service),
    countsBySubService: countBy(buildings, ({ prefab }) => `${prefab.service}/${prefab.subService}`),
  };
}

export function isActive({ flags }: Building): boolean {
  return (flags & ACTIVE) !== 0;
}

/** Flag names in bit order, as one text. */
export function flagText(flags: number): string {
  return flagNames(flags).join(", ");
}

/** Where a building is and how it is, the end of every row. */
export function siteOf(building: Building) {
  const { prefab, angleDegrees, problems } = building;
  return {
    width: prefab.width,
    length: prefab.length,
    angleDegrees,
    problems: problemText(problems),
    position: position(building.position),
  };
}
