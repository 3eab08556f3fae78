/** Which buildings the bridge calls what. */
import type { Building } from "./game.js";
import { flagBit, GROWABLE_SERVICES, type Service } from "./terms.js";

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

export function isActive({ flags }: Building): boolean {
  return (flags & ACTIVE) !== 0;
}
