/** Distributes the supply of a connected network. If it does not suffice, the nearest consumers are served first. */
import { distance } from "../../geometry.js";
import { FLAG, type ProblemName } from "../../terms.js";
import type { NetworkPrefab } from "../catalogue/network-prefabs.js";
import { isActive, RUIN_FLAGS } from "../fabric/buildings.js";
import { isAtShore } from "../fabric/reach.js";
import { type Building, type NetNode, NO_PROBLEMS, type UtilityNetwork } from "../state/entities.js";
import type { World } from "../state/world.js";

export interface UtilityConsumer {
  readonly building: Building;
  readonly need: number;
}

/** One connected network of a utility, with its suppliers and consumers. */
export class Circuit {
  readonly suppliers: { readonly building: Building; readonly amount: number }[] = [];
  readonly consumers: UtilityConsumer[] = [];

  #unserved = 0;

  get supply(): number {
    return this.suppliers.reduce((sum, { amount }) => sum + amount, 0);
  }

  get demand(): number {
    return this.consumers.reduce((sum, { need }) => sum + need, 0);
  }

  /** Whether supply exceeds demand. */
  get hasSpare(): boolean {
    return this.supply > this.demand;
  }

  /** Supplies the nearest consumers first. Calls `serve` for each consumer with the result. */
  distribute(serve: (building: Building, served: boolean) => void): void {
    let left = this.supply;
    const queue = this.demand <= left ? this.consumers : this.#nearestFirst();
    for (const { building, need } of queue) {
      const served = left > 0 && need <= left;
      if (served) left -= need;
      else {
        left = 0;
        this.#unserved++;
      }
      serve(building, served);
    }
  }

  /** Supply and demand of the circuit, as sent to clients. */
  describe(carries: UtilityNetwork["carries"]): UtilityNetwork {
    return {
      carries,
      supply: this.supply,
      demand: this.demand,
      plantIds: this.suppliers.map(({ building }) => building.id),
      consumers: this.consumers.length,
      unserved: this.#unserved,
    };
  }

  #nearestFirst(): readonly UtilityConsumer[] {
    if (this.suppliers.length === 0) return this.consumers;
    const away = (building: Building) =>
      Math.min(...this.suppliers.map((supplier) => distance(building.position, supplier.building.position)));
    return this.consumers
      .map((consumer) => ({ consumer, away: away(consumer.building) }))
      .sort((a, b) => a.away - b.away || a.consumer.building.id - b.consumer.building.id)
      .map(({ consumer }) => consumer);
  }
}

/** Replaces the networks recorded for a utility. */
export function recordNetworks(
  world: World,
  carries: UtilityNetwork["carries"],
  circuits: ReadonlyMap<number, Circuit>,
): void {
  const found = [...circuits.values()].map((circuit) => circuit.describe(carries));
  world.utilities = [...world.utilities.filter((network) => network.carries !== carries), ...found];
}

/** Returns the circuit with this key. Creates it on first use. */
export function circuitOf(circuits: Map<number, Circuit>, key: number): Circuit {
  let circuit = circuits.get(key);
  if (!circuit) {
    circuit = new Circuit();
    circuits.set(key, circuit);
  }
  return circuit;
}

/** Whether a building is finished, standing and not switched off. */
export function isInUse(building: Building): boolean {
  return (
    (building.flags & FLAG.Completed) !== 0 && (building.flags & RUIN_FLAGS) === 0 && !building.switchedOff
  );
}

/** Whether a plant has the road and the shore that it needs. */
export function canOperate(world: World, plant: Building): boolean {
  const { civic } = plant.prefab;
  if (!isActive(plant) || (!civic?.roadless && plant.roadId === 0)) return false;
  return !civic?.shore || isAtShore(world.terrain, plant);
}

/** Sets a problem at each dead end of a line or pipe without supply, and clears it at all other nodes. */
export function markDeadEnds(
  world: World,
  carries: NetworkPrefab["carries"],
  problem: ProblemName,
  isLive: (node: NetNode) => boolean,
): void {
  for (const node of world.nodes.all()) {
    if (node.prefab.carries !== carries) continue;
    const isDead = node.segmentIds.length <= 1 && !isLive(node);
    node.problems = isDead ? { names: [problem], severity: "warning" } : NO_PROBLEMS;
  }
}
