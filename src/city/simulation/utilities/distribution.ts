/** Handing out what a connected network carries: to everybody if there is enough, else to the nearest first. */

import { distance } from "../../geometry.js";
import type { SimBuilding } from "../state/entities.js";

export interface Supplier {
  readonly building: SimBuilding;
  readonly amount: number;
}

export interface Consumer {
  readonly building: SimBuilding;
  readonly need: number;
}

/** One connected network. */
export class Circuit {
  readonly suppliers: Supplier[] = [];
  readonly consumers: Consumer[] = [];

  get supply(): number {
    return this.suppliers.reduce((sum, { amount }) => sum + amount, 0);
  }

  /** Calls back for each consumer with whether it is served. Consumers share what there is, nearest first. */
  distribute(serve: (building: SimBuilding, served: boolean) => void): void {
    let left = this.supply;
    const wanted = this.consumers.reduce((sum, { need }) => sum + need, 0);
    const queue = wanted <= left ? this.consumers : this.nearestFirst();
    for (const { building, need } of queue) {
      const served = left > 0 && need <= left;
      if (served) left -= need;
      else left = 0;
      serve(building, served);
    }
  }

  private nearestFirst(): readonly Consumer[] {
    if (this.suppliers.length === 0) return this.consumers;
    const away = (building: SimBuilding) =>
      Math.min(...this.suppliers.map((supplier) => distance(building.position, supplier.building.position)));
    return this.consumers
      .map((consumer) => ({ consumer, away: away(consumer.building) }))
      .sort((a, b) => a.away - b.away || a.consumer.building.id - b.consumer.building.id)
      .map(({ consumer }) => consumer);
  }
}

/** The circuit with a key, made on first use. */
export function circuitOf(circuits: Map<number, Circuit>, key: number): Circuit {
  let circuit = circuits.get(key);
  if (!circuit) {
    circuit = new Circuit();
    circuits.set(key, circuit);
  }
  return circuit;
}
