/**
 * Water, sewage and heat. Water pipes carry fresh water and sewage; heating pipes carry heat. Pipes are connected
 * only by shared nodes. A building belongs to every network that has a pipe in the building's reach.
 */

import type { ProblemName } from "../../terms.js";
import type { CivicProperties } from "../catalogue/building-prefabs.js";
import { isAbandoned, setProblem } from "../fabric/buildings.js";
import { connectedComponents } from "../fabric/reach.js";
import { temperature } from "../state/calendar.js";
import type { Building, UtilitySupply } from "../state/entities.js";
import type { World } from "../state/world.js";
import {
  type Circuit,
  canOperate,
  circuitOf,
  isInUse,
  markDeadEnds,
  recordNetworks,
  type UtilityConsumer,
} from "./distribution.js";

const M3_PER_HOUSEHOLD = 45;
const M3_PER_WORKER = 8;
const M3_PER_VISITOR = 2;
const M3_PER_CIVIC_JOB = 20;
const HEAT_KW_PER_PLACE = 8;
/** No heating above this outdoor temperature. */
const HEATING_BELOW_DEGREES = 12;

/** Distributes water and drains sewage. */
export function distributeWater(world: World): void {
  const pipes = pipesOf(world, "water", ["waterM3", "sewageM3"], waterNeedM3);
  const water = distribute(world, pipes, "waterM3", "water");
  const sewage = distribute(world, pipes, "sewageM3", "sewage");
  complainOfMissingPipes(world, pipes, "WaterNotConnected", [water, sewage]);
}

/** Distributes heat. Buildings without heating pipes heat with electricity. */
export function distributeHeat(world: World): void {
  const degrees = Math.max(HEATING_BELOW_DEGREES - temperature(world.frame), 0);
  const need = (building: Building) => heatNeed(building, degrees);
  const pipes = pipesOf(world, "heat", ["heatKw"], need);
  for (const building of world.buildings.values()) {
    if (building.heatPipeIds.length === 0) building.supply.heat = true;
  }
  const heat = distribute(world, pipes, "heatKw", "heat");
  complainOfMissingPipes(world, pipes, "HeatingNotConnected", [heat]);
}

/** Sets problems of plants without a pipe and of pipes without supply. */
function complainOfMissingPipes(
  world: World,
  { carries, network, plants, pipeIds }: Pipes,
  problem: ProblemName,
  circuits: readonly Map<number, Circuit>[],
): void {
  for (const plant of plants) setProblem(plant, problem, pipeIds(plant).length === 0, world.frame);
  markDeadEnds(world, carries, problem, ({ id }) =>
    circuits.some((each) => (each.get(network[id] as number)?.supply ?? 0) > 0),
  );
}

/** Water that a building needs, and sewage that it produces, each in cubic metres a week. */
export function waterNeedM3(building: Building): number {
  const { civic } = building.prefab;
  if (!isInUse(building)) return 0;
  if (civic) return civicWaterM3(civic);
  const residents = M3_PER_HOUSEHOLD * building.householdIds.length;
  const others = M3_PER_WORKER * building.workerIds.length + M3_PER_VISITOR * building.visitors;
  return Math.max(1, residents + others);
}

export function civicWaterM3({ waterM3, sewageM3, jobs = 0 }: CivicProperties): number {
  return waterM3 || sewageM3 ? 0 : M3_PER_CIVIC_JOB * jobs;
}

function heatNeed(building: Building, degrees: number): number {
  if (!isInUse(building) || building.prefab.civic || building.heatPipeIds.length === 0) return 0;
  return (degrees / 10) * HEAT_KW_PER_PLACE * (building.homes + building.jobs);
}

/** Pipes of one utility with the buildings they reach. */
interface Pipes {
  readonly carries: "water" | "heat";
  /** Key of the connected network of each node, by node id. */
  readonly network: Int32Array;
  readonly plants: readonly Building[];
  readonly consumers: readonly UtilityConsumer[];
  readonly ruins: readonly Building[];
  readonly pipeIds: (building: Building) => readonly number[];
}

type Output = "waterM3" | "sewageM3" | "heatKw";

/** Collects plants, consumers and ruins. One pass over the buildings makes good use of the CPU cache. */
function pipesOf(
  world: World,
  carries: Pipes["carries"],
  outputs: readonly Output[],
  needOf: (building: Building) => number,
): Pipes {
  const plants: Building[] = [];
  const consumers: UtilityConsumer[] = [];
  const ruins: Building[] = [];
  for (const building of world.buildings.values()) {
    const { civic } = building.prefab;
    if (civic && outputs.some((output) => civic[output])) plants.push(building);
    if (isAbandoned(building)) ruins.push(building);
    const need = needOf(building);
    if (need > 0) consumers.push({ building, need });
  }
  const pipeIds: Pipes["pipeIds"] =
    carries === "water" ? ({ waterPipeIds }) => waterPipeIds : ({ heatPipeIds }) => heatPipeIds;
  return { carries, network: connectedComponents(world, carries), plants, consumers, ruins, pipeIds };
}

/** A plant feeds every network it touches; a consumer draws from the one with the most supply. */
function distribute(
  world: World,
  { network, plants, consumers, ruins, pipeIds }: Pipes,
  output: Output,
  substance: keyof UtilitySupply,
): Map<number, Circuit> {
  const serve = (building: Building, served: boolean) => {
    building.supply[substance] = served;
  };
  const circuits = new Map<number, Circuit>();
  const networkAt = (pipeId: number) => network[world.segments.at(pipeId).startNodeId] as number;
  for (const building of plants) {
    const amount = plantOutput(world, building, output);
    if (amount === 0) continue;
    const touched = [...new Set(pipeIds(building).map(networkAt))];
    for (const key of touched) {
      circuitOf(circuits, key).suppliers.push({ building, amount: amount / touched.length });
    }
  }
  const supply = new Map([...circuits].map(([key, circuit]) => [key, circuit.supply]));
  const bestFor = (building: Building) => {
    let best = 0;
    for (const id of pipeIds(building)) {
      const key = networkAt(id);
      if (key !== best && (supply.get(key) ?? 0) > (supply.get(best) ?? 0)) best = key;
    }
    return best;
  };
  for (const consumer of consumers) {
    const best = bestFor(consumer.building);
    circuitOf(circuits, best).consumers.push(consumer);
  }
  for (const circuit of circuits.values()) circuit.distribute(serve);
  for (const ruin of ruins) serve(ruin, circuits.get(bestFor(ruin))?.hasSpare ?? false);
  recordNetworks(world, substance, circuits);
  return circuits;
}

function plantOutput(world: World, building: Building, output: Output): number {
  return building.supply.power && canOperate(world, building) ? (building.prefab.civic?.[output] ?? 0) : 0;
}
