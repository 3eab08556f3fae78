/**
 * Electricity. Every building spreads power in a small field around itself, and so does every pole of a power line;
 * fields that touch form one circuit, and a line joins the circuits at its two ends. Fields are kept on a grid of
 * 32 m cells.
 */
import type { GroundPoint } from "../../game.js";
import { footprintRadius } from "../../geometry.js";
import { ABANDONED, COMPLETED, DOWN, isActive, setProblem } from "../fabric/buildings.js";
import { isAtShore } from "../fabric/reach.js";
import { temperature } from "../state/calendar.js";
import { NO_PROBLEMS, type SimBuilding } from "../state/entities.js";
import { hash } from "../state/random.js";
import { MAP_HALF_METERS } from "../state/terrain.js";
import type { World } from "../state/world.js";
import { type Circuit, circuitOf } from "./distribution.js";

const CELL_METERS = 32;
const CELLS = (2 * MAP_HALF_METERS) / CELL_METERS;
/** How far beyond its footprint a building, or around a pole, power spreads. */
const FIELD_METERS = 24;

const KW_PER_HOME = 12;
const KW_PER_JOB = 10;
const KW_PER_CIVIC_CELL = 4;
/** What heating by electricity adds on a day this cold or colder, without heating pipes. */
const COLD_DEGREES = 0;
const ELECTRIC_HEATING_FACTOR = 1.5;

/** Forms the circuits anew and decides who has power. */
export function distributePower(world: World): void {
  const field = new PowerField();
  const buildings = world.buildings.all().filter((building) => (building.flags & ABANDONED) === 0);
  for (const building of buildings) {
    field.spread(building.position, footprintRadius(building) + FIELD_METERS);
  }
  for (const segment of world.segments.all()) {
    if (segment.prefab.carries !== "power") continue;
    field.spread(segment.start, FIELD_METERS);
    field.spread(segment.end, FIELD_METERS);
    field.join(segment.start, segment.end);
  }
  const circuits = new Map<number, Circuit>();
  for (const building of buildings) {
    const circuit = circuitOf(circuits, field.circuitAt(building.position));
    const amount = powerOutput(world, building);
    const need = powerNeed(world, building);
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
  markDeadLines(world, (point) => (circuits.get(field.circuitAt(point))?.supply ?? 0) > 0);
}

/** Output in kW at this moment; 0 for a building that makes none. */
export function powerOutput(world: World, building: SimBuilding): number {
  const civic = building.prefab.civic;
  if (!civic?.powerKw || !isActive(building)) return 0;
  if (!civic.roadless && building.roadId === 0) return 0;
  if (civic.shore && !isAtShore(world.terrain, building)) return 0;
  return civic.powerKw * (civic.wind ? windAt(world, building.position) : 1);
}

/** Consumption in kW; 0 for building sites, ruins, power plants and what has no appliances. */
export function powerNeed(world: World, building: SimBuilding): number {
  const { civic, helper, width, length } = building.prefab;
  if ((building.flags & COMPLETED) === 0 || (building.flags & DOWN) !== 0 || building.switchedOff) return 0;
  if (civic)
    return civic.powerKw || helper || building.prefab.cost === 0 ? 0 : KW_PER_CIVIC_CELL * width * length;
  const base = KW_PER_HOME * building.homes + KW_PER_JOB * building.jobs;
  const cold = temperature(world.frame) <= COLD_DEGREES && building.heatPipeIds.length === 0;
  return Math.max(1, cold ? base * ELECTRIC_HEATING_FACTOR : base);
}

/** Share of the best output that the wind allows at a place: 60 to 100 percent. */
function windAt(world: World, { x, z }: GroundPoint): number {
  return 0.6 + (0.4 * hash(world.seed + 21, Math.floor(x / 256), Math.floor(z / 256))) / 0xffffffff;
}

/** The free end of a line that carries nothing has a problem. */
function markDeadLines(world: World, isLive: (point: GroundPoint) => boolean): void {
  for (const node of world.nodes.all()) {
    if (node.prefab.carries !== "power") continue;
    const dead = node.segmentIds.length <= 1 && !isLive(node.position);
    node.problems = dead ? { names: ["ElectricityNotConnected"], severity: "warning" } : NO_PROBLEMS;
  }
}

/** Union-find over the cells that fields cover. */
class PowerField {
  /** Per cell its parent plus one; 0 where there is no field. */
  private readonly parent = new Int32Array(CELLS * CELLS);

  spread(center: GroundPoint, radius: number): void {
    const middle = cellOf(center.x, center.z);
    this.claim(middle);
    const maxRow = rowOf(center.z + radius);
    const maxColumn = rowOf(center.x + radius);
    for (let row = rowOf(center.z - radius); row <= maxRow; row++) {
      for (let column = rowOf(center.x - radius); column <= maxColumn; column++) {
        const cell = row * CELLS + column;
        this.claim(cell);
        this.union(middle, cell);
      }
    }
  }

  join(a: GroundPoint, b: GroundPoint): void {
    this.union(cellOf(a.x, a.z), cellOf(b.x, b.z));
  }

  /** A key of the circuit at a point that has a field. */
  circuitAt(point: GroundPoint): number {
    return this.find(cellOf(point.x, point.z));
  }

  private claim(cell: number): void {
    if (this.parent[cell] === 0) this.parent[cell] = cell + 1;
  }

  private union(a: number, b: number): void {
    const rootA = this.find(a);
    const rootB = this.find(b);
    this.parent[Math.max(rootA, rootB)] = Math.min(rootA, rootB) + 1;
  }

  private find(cell: number): number {
    let root = cell;
    while (this.parent[root] !== root + 1) root = (this.parent[root] as number) - 1;
    for (let at = cell; at !== root; ) {
      const next = (this.parent[at] as number) - 1;
      this.parent[at] = root + 1;
      at = next;
    }
    return root;
  }
}

function rowOf(meters: number): number {
  return Math.min(Math.max(Math.floor((meters + MAP_HALF_METERS) / CELL_METERS), 0), CELLS - 1);
}

function cellOf(x: number, z: number): number {
  return rowOf(z) * CELLS + rowOf(x);
}
