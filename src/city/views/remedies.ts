/** Commands that solve the problem of an advice entry. Clients can send them unchanged. */
import { MAX_CONNECTION_METERS } from "../commands/roads.js";
import { suggestPlacesInPieces } from "../commands/sites.js";
import { isProtected } from "../commands/zones.js";
import { distance, type Footprint, type GroundPoint } from "../geometry.js";
import {
  type BuildingPrefab,
  COVERAGES,
  type Coverage,
  findBuildingPrefab,
} from "../simulation/catalogue/building-prefabs.js";
import { findNetworkPrefab, type NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { occupiedCellMask, usableCellMask } from "../simulation/fabric/zone-blocks.js";
import { cheapestProvider } from "../simulation/life/affordability.js";
import { weeklySurplus } from "../simulation/life/finance.js";
import { FRAMES_PER_CYCLE } from "../simulation/state/calendar.js";
import { MAX_TAX_RATE } from "../simulation/state/economy.js";
import type { UtilitySupply } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import type { SubService, Zone } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";

/** The city computes the effect of a service within this time. */
const EFFECT_FRAMES = 2 * FRAMES_PER_CYCLE;

type Command = { readonly command: string; readonly fields: JsonObject };
/** A building for which a free place near a point is still to be found. */
type Building = { readonly build: BuildingPrefab; readonly near: GroundPoint };
export type Remedy = Command | Building;
type Remedies = (world: World, place: GroundPoint) => Remedy[];

/** Finds commands that help. A key is a cause of unhappiness (life/happiness.ts), or the name of a problem. */
const REMEDIES: Readonly<Record<string, Remedies>> = {
  ...Object.fromEntries(COVERAGES.map((kind) => [kind, buildsProvider(kind)])),
  crime: buildsProvider("police"),
  residentHealth: buildsProvider("health"),
  landValue: buildsProvider("leisure"),
  rubbish: buildsProvider("garbage"),
  Garbage: buildsProvider("garbage"),
  Death: buildsProvider("death"),
  Crime: buildsProvider("police"),
  Fire: buildsProvider("fire"),
  LandValueLow: buildsProvider("leisure"),
  NoEducatedWorkers: buildsProvider("elementary"),
  Electricity: connectsOrBuilds("power", "Power Line"),
  Water: connectsOrBuilds("water", "Water Pipe"),
  Sewage: connectsOrBuilds("sewage", "Water Pipe"),
  Heating: connectsOrBuilds("heat", "Heating Pipe"),
  taxes: lowersTaxes("Residential"),
  TaxesTooHigh: lowersTaxes(""),
  unemployment: (world, place) => zoneNear(world, place, "Industrial"),
  shopping: (world, place) => zoneNear(world, place, "CommercialLow"),
  NoWorkers: (world, place) => zoneNear(world, place, "ResidentialLow"),
  NoCustomers: (world, place) => zoneNear(world, place, "ResidentialLow"),
  NoGoods: (world, place) => zoneNear(world, place, "Industrial"),
  RoadNotConnected: (_, from) => [{ command: "connect", fields: { from: { x: from.x, z: from.z } } }],
};

/** Commands against a cause of unhappiness or a problem; empty if no command helps. */
export function remediesFor(world: World, cause: string, place: GroundPoint): Remedy[] {
  return REMEDIES[cause]?.(world, place) ?? [];
}

/**
 * The command of a remedy: a building goes to the best free place, or the command lists free places.
 * @param taken sites of commands that were proposed before; gets the building's
 */
export function* commandOf(world: World, remedy: Remedy, taken: Footprint[]): Generator<void, Command> {
  if ("command" in remedy) return remedy;
  const { build, near } = remedy;
  const [best] = yield* suggestPlacesInPieces(world, build, near, { count: 1, taken });
  const buildingPrefab = build.name;
  if (!best) {
    const position = { x: near.x, z: near.z };
    return { command: "place-building", fields: { buildingPrefab, position, suggest: true } };
  }
  const { position, angleDegrees } = best;
  taken.push({ position, angleDegrees, prefab: build });
  return { command: "place-building", fields: { buildingPrefab, position: { ...position }, angleDegrees } };
}

/** A city that loses money is advised to raise its taxes, so not to lower them. */
function lowersTaxes(service: string): Remedies {
  return (world) => (weeklySurplus(world) < 0 ? [] : [changeTaxRate(world, service, "ResidentialLow", -2)]);
}

/** The cheapest plant of each utility. */
const PLANTS: Readonly<Record<keyof UtilitySupply, string>> = {
  power: "Wind Turbine",
  water: "Water Tower",
  sewage: "Inland Water Treatment Plant 01",
  heat: "Boiler Station",
};

/** Another plant of a utility near a place. */
export function anotherPlant(carries: keyof UtilitySupply, near: GroundPoint): Remedy[] {
  return [{ build: findBuildingPrefab(PLANTS[carries]) as BuildingPrefab, near }];
}

/** Lays a line to a place that gets none of a utility, if a network has some to spare. Otherwise builds a plant. */
function connectsOrBuilds(carries: keyof UtilitySupply, line: string): Remedies {
  const prefab = findNetworkPrefab(line) as NetworkPrefab;
  return (world, { x, z }) => {
    const isSpare = world.utilities.some((each) => each.carries === carries && each.supply > each.demand);
    if (!isSpare) return anotherPlant(carries, { x, z });
    const fields = {
      from: { x, z },
      toService: prefab.service,
      roadPrefab: line,
      maxDistance: MAX_CONNECTION_METERS,
    };
    return [{ command: "connect", fields }];
  };
}

function buildsProvider(kind: Coverage): Remedies {
  return buildsPrefab(cheapestProvider(kind));
}

function buildsPrefab(build: BuildingPrefab): Remedies {
  return (_, near) => [{ build, near }];
}

/** Whether the remedy is a service that was built near the place, but whose effect is not felt yet. Plants work at once. */
export function wasJustBuilt(world: World, remedy: Remedy): boolean {
  if (!("build" in remedy)) return false;
  const { build, near } = remedy;
  const reach = build.civic?.coverage?.radiusMeters ?? 0;
  return world.buildings.all().some(({ prefab, builtFrame, position }) => {
    const isNew = world.frame - builtFrame < EFFECT_FRAMES;
    return prefab.name === build.name && isNew && distance(position, near) <= reach;
  });
}

/** Command that changes a tax rate by some percentage points. */
export function changeTaxRate(world: World, service: string, like: SubService, points: number): Command {
  const rate = Math.min(Math.max(world.taxes.rate(like, 1) + points, 0), MAX_TAX_RATE);
  return { command: "set-tax-rate", fields: { service, rate } };
}

/** Command that zones the nearest unzoned block that `set-zone` paints; none if there is no such block. */
export function zoneNear(world: World, place: GroundPoint, zone: Zone): Command[] {
  const nearest = world.blocks
    .all()
    .filter(({ commonZone }) => commonZone === 0)
    .map((block) => ({ block, away: distance(block.position, place) }))
    .sort((a, b) => a.away - b.away)
    .find(({ block }) => {
      const free = usableCellMask(world, block) & ~occupiedCellMask(world, block);
      return free !== 0 && !isProtected(world, block);
    });
  if (!nearest) return [];
  const { x, z } = nearest.block.position;
  return [{ command: "set-zone", fields: { zone, center: { x, z }, radius: 24 } }];
}

/** Command that upgrades a segment to the next wider road; none for the widest. */
export function widenRoad(world: World, id: number): Command[] {
  const prefab = world.segments.get(id)?.prefab;
  if (!prefab || prefab.name.startsWith("Highway")) return [];
  const wider = ["Medium Road", "Large Road"].find((name) => {
    return (findNetworkPrefab(name)?.capacityPerHour ?? 0) > prefab.capacityPerHour;
  });
  return wider ? [{ command: "upgrade-road", fields: { id, roadPrefab: wider } }] : [];
}
