/**
 * Water, sewage and heat. Pipes form networks through shared nodes only; a building or plant belongs to the networks
 * whose pipes lie within reach of it. Water pipes carry fresh water and sewage, heating pipes carry heat.
 */
import type { ProblemName } from "../../terms.js";
import { isAbandoned, setProblem } from "../fabric/buildings.js";
import { components } from "../fabric/reach.js";
import { temperature } from "../state/calendar.js";
import type { SimBuilding, Supply } from "../state/entities.js";
import type { World } from "../state/world.js";
import {
  type Circuit,
  canOperate,
  circuitOf,
  isInUse,
  markDeadEnds,
  recordNetworks,
} from "./distribution.js";

const M3_PER_HOUSEHOLD = 45;
const M3_PER_WORKER = 8;
const M3_PER_VISITOR = 2;
const M3_PER_CIVIC_JOB = 20;
const HEAT_KW_PER_PLACE = 8;
/** Nobody heats above this outdoor temperature. */
const HEATING_BELOW_DEGREES = 12;

/** Decides who has water and who can drain. */
export function distributeWater(world: World): void {
  const pipes = pipesOf(world, "water", (building) => building.waterPipeIds);
  const water = distribute(world, pipes, "waterM3", waterNeed, "water");
  const sewage = distribute(world, pipes, "sewageM3", waterNeed, "sewage");
  complainOfMissingPipes(world, pipes, "WaterNotConnected", ["waterM3", "sewageM3"], [water, sewage]);
}

/** Decides who is warm. Only buildings at heating pipes depend on them; the rest heat with electricity. */
export function distributeHeat(world: World): void {
  const pipes = pipesOf(world, "heat", (building) => building.heatPipeIds);
  for (const building of pipes.buildings) if (building.heatPipeIds.length === 0) building.supply.heat = true;
  const heat = distribute(world, pipes, "heatKw", (building) => heatNeed(world, building), "heat");
  complainOfMissingPipes(world, pipes, "HeatingNotConnected", ["heatKw"], [heat]);
}

/** What is wrong with plants that reach no pipe, and with pipe ends that nothing comes through. */
function complainOfMissingPipes(
  world: World,
  { carries, network, buildings, pipeIds }: Pipes,
  problem: ProblemName,
  outputs: readonly Output[],
  circuits: readonly Map<number, Circuit>[],
): void {
  for (const building of buildings) {
    if (!outputs.some((output) => building.prefab.civic?.[output])) continue;
    setProblem(building, problem, pipeIds(building).length === 0, world.frame);
  }
  markDeadEnds(world, carries, problem, ({ id }) =>
    circuits.some((each) => (each.get(network[id] as number)?.supply ?? 0) > 0),
  );
}

/** Cubic metres of water, and as much sewage, that a building needs a week. */
export function waterNeed(building: SimBuilding): number {
  const { civic } = building.prefab;
  if (!isInUse(building)) return 0;
  if (civic) return civic.waterM3 || civic.sewageM3 ? 0 : M3_PER_CIVIC_JOB * (civic.jobs ?? 0);
  const residents = M3_PER_HOUSEHOLD * building.householdIds.length;
  const others = M3_PER_WORKER * building.workerIds.length + M3_PER_VISITOR * building.visitors;
  return Math.max(1, residents + others);
}

function heatNeed(world: World, building: SimBuilding): number {
  if (!isInUse(building) || building.prefab.civic || building.heatPipeIds.length === 0) return 0;
  const degrees = HEATING_BELOW_DEGREES - temperature(world.frame);
  return (Math.max(degrees, 0) / 10) * HEAT_KW_PER_PLACE * (building.homes + building.jobs);
}

/** The pipes that carry something, and who is at them. */
interface Pipes {
  readonly carries: "water" | "heat";
  /** Per node id a key of its connected network. */
  readonly network: Int32Array;
  readonly buildings: readonly SimBuilding[];
  readonly pipeIds: (building: SimBuilding) => readonly number[];
}

function pipesOf(world: World, carries: Pipes["carries"], pipeIds: Pipes["pipeIds"]): Pipes {
  return { carries, network: components(world, carries), buildings: world.buildings.all(), pipeIds };
}

type Output = "waterM3" | "sewageM3" | "heatKw";

/** One substance through the pipes: plants feed every network they touch once, consumers take from the richest. */
function distribute(
  world: World,
  { network, buildings, pipeIds }: Pipes,
  output: Output,
  needOf: (building: SimBuilding) => number,
  substance: keyof Supply,
): Map<number, Circuit> {
  const serve = (building: SimBuilding, served: boolean) => {
    building.supply[substance] = served;
  };
  const circuits = new Map<number, Circuit>();
  const networkAt = (pipeId: number) => network[world.segments.at(pipeId).startNodeId] as number;
  for (const building of buildings) {
    const amount = plantOutput(world, building, output);
    if (amount === 0) continue;
    const touched = [...new Set(pipeIds(building).map(networkAt))];
    for (const key of touched) {
      circuitOf(circuits, key).suppliers.push({ building, amount: amount / touched.length });
    }
  }
  const supply = new Map([...circuits].map(([key, circuit]) => [key, circuit.supply]));
  const bestFor = (building: SimBuilding) => {
    let best = 0;
    for (const id of pipeIds(building)) {
      const key = networkAt(id);
      if (key !== best && (supply.get(key) ?? 0) > (supply.get(best) ?? 0)) best = key;
    }
    return best;
  };
  for (const building of buildings) {
    const need = needOf(building);
    if (need === 0) continue;
    const best = bestFor(building);
    if (best === 0) serve(building, false);
    else circuitOf(circuits, best).consumers.push({ building, need });
  }
  for (const circuit of circuits.values()) circuit.distribute(serve);
  for (const ruin of buildings.filter(isAbandoned))
    serve(ruin, circuits.get(bestFor(ruin))?.hasSpare ?? false);
  recordNetworks(world, substance, circuits);
  return circuits;
}

function plantOutput(world: World, building: SimBuilding, output: Output): number {
  return building.supply.power && canOperate(world, building) ? (building.prefab.civic?.[output] ?? 0) : 0;
}
