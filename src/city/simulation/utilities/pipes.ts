/**
 * Water, sewage and heat. Pipes form networks through shared nodes only; a building or plant belongs to the networks
 * whose pipes lie within reach of it. Water pipes carry fresh water and sewage, heating pipes carry heat.
 */
import { COMPLETED, DOWN, isActive, setProblem } from "../fabric/buildings.js";
import { components, isAtShore } from "../fabric/reach.js";
import { temperature } from "../state/calendar.js";
import { NO_PROBLEMS, type SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { type Circuit, circuitOf } from "./distribution.js";

const M3_PER_HOUSEHOLD = 45;
const M3_PER_WORKER = 8;
const M3_PER_VISITOR = 2;
const M3_PER_CIVIC_JOB = 20;
const HEAT_KW_PER_PLACE = 8;
/** Nobody heats above this outdoor temperature. */
const HEATING_BELOW_DEGREES = 12;

/** Decides who has water and who can drain. */
export function distributeWater(world: World): void {
  const network = components(world, (segment) => segment.prefab.carries === "water");
  const buildings = world.buildings.all();
  const pipes = { network, buildings, segmentIds: (building: SimBuilding) => building.waterPipeIds };
  const water = distribute(world, pipes, "waterM3", waterNeed, (building, served) => {
    building.supply.water = served;
  });
  const sewage = distribute(world, pipes, "sewageM3", waterNeed, (building, served) => {
    building.supply.sewage = served;
  });
  for (const building of buildings) {
    const { civic } = building.prefab;
    if (!civic?.waterM3 && !civic?.sewageM3) continue;
    setProblem(building, "WaterNotConnected", building.waterPipeIds.length === 0, world.frame);
  }
  for (const node of world.nodes.all()) {
    if (node.prefab.carries !== "water") continue;
    const key = network[node.id] as number;
    const serves = (water.get(key)?.supply ?? 0) + (sewage.get(key)?.supply ?? 0) > 0;
    const dry = node.segmentIds.length <= 1 && !serves;
    node.problems = dry ? { names: ["WaterNotConnected"], severity: "warning" } : NO_PROBLEMS;
  }
}

/** Decides who is warm. Only buildings at heating pipes depend on them; the rest heat with electricity. */
export function distributeHeat(world: World): void {
  const network = components(world, (segment) => segment.prefab.carries === "heat");
  const buildings = world.buildings.all();
  const pipes = { network, buildings, segmentIds: (building: SimBuilding) => building.heatPipeIds };
  for (const building of buildings) if (building.heatPipeIds.length === 0) building.supply.heat = true;
  const heat = distribute(
    world,
    pipes,
    "heatKw",
    (building) => heatNeed(world, building),
    (building, served) => {
      building.supply.heat = served;
    },
  );
  for (const building of buildings) {
    if (!building.prefab.civic?.heatKw) continue;
    setProblem(building, "HeatingNotConnected", building.heatPipeIds.length === 0, world.frame);
  }
  for (const node of world.nodes.all()) {
    if (node.prefab.carries !== "heat") continue;
    const cold = node.segmentIds.length <= 1 && !((heat.get(network[node.id] as number)?.supply ?? 0) > 0);
    node.problems = cold ? { names: ["HeatingNotConnected"], severity: "warning" } : NO_PROBLEMS;
  }
}

/** Cubic metres of water, and as much sewage, that a building needs a week. */
export function waterNeed(building: SimBuilding): number {
  const { civic } = building.prefab;
  if (!usesPipes(building)) return 0;
  if (civic) return civic.waterM3 || civic.sewageM3 ? 0 : M3_PER_CIVIC_JOB * (civic.jobs ?? 0);
  const residents = M3_PER_HOUSEHOLD * building.householdIds.length;
  const others = M3_PER_WORKER * building.workerIds.length + M3_PER_VISITOR * building.visitors;
  return Math.max(1, residents + others);
}

function heatNeed(world: World, building: SimBuilding): number {
  if (!usesPipes(building) || building.prefab.civic || building.heatPipeIds.length === 0) return 0;
  const degrees = HEATING_BELOW_DEGREES - temperature(world.frame);
  return (Math.max(degrees, 0) / 10) * HEAT_KW_PER_PLACE * (building.homes + building.jobs);
}

function usesPipes(building: SimBuilding): boolean {
  return (building.flags & COMPLETED) !== 0 && (building.flags & DOWN) === 0 && !building.switchedOff;
}

interface PipeFlow {
  readonly network: Int32Array;
  readonly buildings: readonly SimBuilding[];
  readonly segmentIds: (building: SimBuilding) => readonly number[];
}

type Output = "waterM3" | "sewageM3" | "heatKw";

/** One substance through the pipes: plants feed every network they touch once, consumers take from the richest. */
function distribute(
  world: World,
  { network, buildings, segmentIds }: PipeFlow,
  output: Output,
  needOf: (building: SimBuilding) => number,
  serve: (building: SimBuilding, served: boolean) => void,
): Map<number, Circuit> {
  const circuits = new Map<number, Circuit>();
  const networksOf = (building: SimBuilding) =>
    segmentIds(building).map((id) => network[world.segments.at(id).startNodeId] as number);
  for (const building of buildings) {
    const amount = plantOutput(world, building, output);
    if (amount === 0) continue;
    const touched = [...new Set(networksOf(building))];
    for (const key of touched) {
      circuitOf(circuits, key).suppliers.push({ building, amount: amount / touched.length });
    }
  }
  const supply = new Map([...circuits].map(([key, circuit]) => [key, circuit.supply]));
  for (const building of buildings) {
    const need = needOf(building);
    if (need === 0) continue;
    let best = 0;
    for (const key of networksOf(building)) if ((supply.get(key) ?? 0) > (supply.get(best) ?? 0)) best = key;
    if (best === 0) serve(building, false);
    else circuitOf(circuits, best).consumers.push({ building, need });
  }
  for (const circuit of circuits.values()) circuit.distribute(serve);
  return circuits;
}

function plantOutput(world: World, building: SimBuilding, output: Output): number {
  const { civic } = building.prefab;
  const amount = civic?.[output] ?? 0;
  if (amount === 0 || !isActive(building) || !building.supply.power) return 0;
  if (!civic?.roadless && building.roadId === 0) return 0;
  return civic?.shore && !isAtShore(world.terrain, building) ? 0 : amount;
}
