/**
 * Electricity. Every building and every power line pole has a power field around it. Fields that touch form
 * one circuit, and a power line joins the circuits at its two ends. Fields are stored on a grid of 32 m
 * cells.
 */

import { distance, type Footprint, footprintRadius, type GroundPoint, squareAround } from "../../geometry.js";
import { cachedByRevision } from "../../revision-cache.js";
import type { BuildingPrefab } from "../catalogue/building-prefabs.js";
import { isAbandoned, setProblem } from "../fabric/buildings.js";
import { temperature } from "../state/calendar.js";
import { DisjointSets } from "../state/collections.js";
import type { Building, NetSegment } from "../state/entities.js";
import { hash } from "../state/random.js";
import { MAP_HALF_METERS } from "../state/terrain.js";
import type { World } from "../state/world.js";
import {
  type Circuit,
  canOperate,
  circuitOf,
  isInUse,
  markDeadEnds,
  recordNetworks,
} from "./distribution.js";

const FIELD_CELL_METERS = 32;
const CELLS = (2 * MAP_HALF_METERS) / FIELD_CELL_METERS;
/** How far a power field reaches beyond the footprint of a building or from a pole. */
const FIELD_METERS = 24;

const KW_PER_HOME = 12;
const KW_PER_JOB = 10;
const KW_PER_CIVIC_CELL = 4;
/** At this temperature in degrees Celsius or below, electric heating multiplies consumption by the factor. */
const COLD_DEGREES = 0;
const ELECTRIC_HEATING_FACTOR = 1.5;

/** Rebuilds the circuits and distributes power. */
export function distributePower(world: World): void {
  const field = powerField(world);
  const buildings = world.buildings.all().filter((building) => !isAbandoned(building));
  const circuits = new Map<number, Circuit>();
  for (const building of buildings) {
    const circuit = circuitOf(circuits, field.circuitAt(building.position));
    const amount = powerOutput(world, building);
    const need = powerNeedKw(world, building);
    if (amount > 0) circuit.suppliers.push({ building, amount });
    if (need > 0) circuit.consumers.push({ building, need });
  }
  for (const circuit of circuits.values()) {
    circuit.distribute((building, served) => {
      building.supply.power = served;
    });
    for (const { building } of circuit.suppliers) {
      const alone = circuit.consumers.length === 0 && circuit.suppliers.length === 1;
      setProblem(building, "ElectricityNotConnected", alone, world.frame);
    }
  }
  for (const ruin of world.buildings.values()) {
    if (isAbandoned(ruin))
      ruin.supply.power = circuits.get(field.circuitAt(ruin.position))?.hasSpare ?? false;
  }
  recordNetworks(world, "power", circuits);
  markDeadEnds(world, "power", "ElectricityNotConnected", ({ position }) => {
    return (circuits.get(field.circuitAt(position))?.supply ?? 0) > 0;
  });
}

/** Power fields of all buildings and poles. */
const powerField = cachedByRevision("powerFieldRevision", (world: World): PowerField => {
  const field = new PowerField();
  for (const building of world.buildings.values()) {
    if (!isAbandoned(building)) field.spread(building.position, footprintRadius(building) + FIELD_METERS);
  }
  for (const segment of world.segments.values()) {
    if (segment.prefab.carries !== "power") continue;
    field.spread(segment.start, FIELD_METERS);
    field.spread(segment.end, FIELD_METERS);
    field.join(segment.start, segment.end);
  }
  return field;
});

/** Output in kW at this moment; 0 for a building that makes none. */
function powerOutput(world: World, building: Building): number {
  const civic = building.prefab.civic;
  if (!civic?.powerKw || !canOperate(world, building)) return 0;
  if (civic.burnsFuel && building.fuel === 0) return 0;
  return civic.powerKw * (civic.wind ? windAt(world, building.position) : 1);
}

/** Consumption in kW; 0 for buildings not in use, power plants and buildings without upkeep. */
export function powerNeedKw(world: World, building: Building): number {
  if (!isInUse(building)) return 0;
  if (building.prefab.civic) return civicPowerKw(building.prefab);
  const base = KW_PER_HOME * building.homes + KW_PER_JOB * building.jobs;
  const cold = temperature(world.frame) <= COLD_DEGREES && building.heatPipeIds.length === 0;
  return Math.max(1, cold ? base * ELECTRIC_HEATING_FACTOR : base);
}

export function civicPowerKw({ civic, helper, upkeepPerWeek, width, length }: BuildingPrefab): number {
  return civic?.powerKw || helper || upkeepPerWeek === 0 ? 0 : KW_PER_CIVIC_CELL * width * length;
}

/** Whether a place is near a building with power or a power line, even one without power. */
export function hasPowerAt(world: World, site: Footprint): boolean {
  const reach = footprintRadius(site) + 2 * FIELD_METERS;
  const isLive = (building: Building) => {
    const near = distance(building.position, site.position) <= reach + footprintRadius(building);
    return near && isInUse(building) && building.supply.power;
  };
  const isLine = ({ prefab, start, end }: NetSegment) =>
    prefab.carries === "power" &&
    Math.min(distance(start, site.position), distance(end, site.position)) <= reach;
  return (
    world.buildings.near(squareAround(site.position, reach)).some(isLive) ||
    world.segments.near(squareAround(site.position, reach)).some(isLine)
  );
}

/** Output of a wind turbine at a place, as a share of its maximum: 0.6 to 1. */
function windAt(world: World, { x, z }: GroundPoint): number {
  return 0.6 + (0.4 * hash(world.seed + 21, Math.floor(x / 256), Math.floor(z / 256))) / 0xffffffff;
}

/** Grid cells that power fields cover. Touching cells form one circuit. */
class PowerField {
  readonly #cells = new DisjointSets(CELLS * CELLS);

  spread(center: GroundPoint, radius: number): void {
    const middle = cellOf(center);
    const maxRow = rowOf(center.z + radius);
    const maxColumn = rowOf(center.x + radius);
    for (let row = rowOf(center.z - radius); row <= maxRow; row++) {
      for (let column = rowOf(center.x - radius); column <= maxColumn; column++) {
        this.#cells.join(middle, row * CELLS + column);
      }
    }
  }

  join(a: GroundPoint, b: GroundPoint): void {
    this.#cells.join(cellOf(a), cellOf(b));
  }

  /** Returns the key of the circuit at a point. A power field must cover the point. */
  circuitAt(point: GroundPoint): number {
    return this.#cells.key(cellOf(point));
  }
}

function rowOf(meters: number): number {
  return Math.min(Math.max(Math.floor((meters + MAP_HALF_METERS) / FIELD_CELL_METERS), 0), CELLS - 1);
}

function cellOf({ x, z }: GroundPoint): number {
  return rowOf(z) * CELLS + rowOf(x);
}
