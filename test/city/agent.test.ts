/** A scripted agent that uses only the HTTP interface: it repeatedly reads, decides, and sends one command. */

import { expect } from "chai";
import { type Answer, type BridgeClient, bridgeForEach } from "./bridge.js";
import { advance } from "./simulation/towns.js";

const BLOCK_METERS = 80;
const WEST = 160;
const SOUTH = -160;
const COLUMNS = 5;
const ROWS = 5;
const MAX_STEPS = 100;
const FRAMES_PER_WEEK = 4096;

/** For each message or problem: a building that solves it, and a free site beside the outer streets. */
const REMEDIES = {
  CHIRP_NO_SCHOOLS: { buildingPrefab: "Elementary School", position: { x: 300, z: -195 } },
  CHIRP_NO_HEALTHCARE: { buildingPrefab: "Medical Clinic", position: { x: 220, z: -195 } },
  CHIRP_NEED_MORE_PARKS: { buildingPrefab: "Regular Park", position: { x: 400, z: -195 } },
  Garbage: { buildingPrefab: "Landfill Site", position: { x: 524, z: -80 }, angleDegrees: 90 },
  Death: { buildingPrefab: "Cemetery", position: { x: 524, z: 20 }, angleDegrees: 90 },
  Crime: { buildingPrefab: "Police Station", position: { x: 514, z: 90 }, angleDegrees: 90 },
  Fire: { buildingPrefab: "Fire House", position: { x: 510, z: 140 }, angleDegrees: 90 },
};

describe("a scripted agent that uses only HTTP requests", () => {
  const bridge = bridgeForEach({ map: "highway" });
  let client: BridgeClient;

  beforeEach(() => {
    client = bridge.client;
  });

  it("grows an empty map to a town of 500 people and saves it @slow", async function () {
    this.timeout(300_000);
    await layStreets();
    await supply();
    await grow();
    await expectNoFaults();
    await client.save("Agent Town");
  });

  /** Builds a grid of streets, and links it to both carriageways of the highway. */
  async function layStreets(): Promise<void> {
    const at = (column: number, row: number) => ({
      x: WEST + column * BLOCK_METERS,
      z: SOUTH + row * BLOCK_METERS,
    });
    for (let row = 0; row < ROWS; row++) {
      for (let column = 0; column < COLUMNS; column++) {
        if (column > 0) await street(at(column - 1, row), at(column, row));
        if (row > 0) await street(at(column, row - 1), at(column, row));
      }
    }
    const gate = { x: 400, z: 300 };
    await street(at(3, 4), gate);
    await street(gate, { x: 422.737, z: 522.957 });
    await street(gate, { x: 423.614, z: 554.945 });
    const outside = await client.state("/state/external-connections");
    expect(outside.cityConnectedToOutside).to.equal(true);
  }

  async function street(start: object, end: object, roadPrefab = "Basic Road"): Promise<void> {
    const road = { roadPrefab, start, end, name: "Avenue" };
    await client.run("build-network", { ...road, dryRun: true });
    await client.run("build-network", road);
  }

  /** Lays pipes along the streets, and builds plants at the western end. Power spreads between buildings. */
  async function supply(): Promise<void> {
    for (const z of [-120, 0, 120]) await street({ x: 120, z }, { x: 480, z }, "Water Pipe");
    await street({ x: 120, z: -120 }, { x: 120, z: 0 }, "Water Pipe");
    await street({ x: 120, z: 0 }, { x: 120, z: 120 }, "Water Pipe");
    const plants = [
      ["Inland Water Treatment Plant 01", 128, -120],
      ["Inland Water Treatment Plant 01", 128, 120],
      ["Water Tower", 140, -60],
      ["Water Tower", 140, 60],
      ["Wind Turbine", 140, -30],
      ["Wind Turbine", 140, 0],
      ["Wind Turbine", 140, 30],
      ["Wind Turbine", 110, 0],
    ] as const;
    for (const [buildingPrefab, x, z] of plants) {
      await client.run("place-building", { buildingPrefab, position: { x, z } });
    }
    expect((await client.state("/state/building-anomalies")).total).to.equal(0);
  }

  /** Each week, builds one of the REMEDIES. If there is no problem, zones a block for the highest demand. */
  async function grow(): Promise<void> {
    const blocks = blockCenters();
    const remedies = new Map(Object.entries(REMEDIES));
    for (let step = 0; step < MAX_STEPS; step++) {
      if ((await settle()).citizens.count >= 500) return;
      const { countsByProblem } = await client.state("/state/problems");
      const { chirps } = await client.state("/state/chirps?limit=200");
      const said = new Set(chirps.map(({ messageId }: Answer) => messageId));
      const problem = [...remedies.keys()].find((name) => name in countsByProblem || said.has(name));
      if (problem !== undefined) {
        await client.run("place-building", remedies.get(problem));
        remedies.delete(problem);
        continue;
      }
      const zone = zoneFor(await client.state("/state/demand"));
      const center = zone === null ? undefined : blocks.shift();
      if (center) await client.run("set-zone", { zone, center, radius: 36 });
    }
    throw new Error(`the town did not grow in ${MAX_STEPS} steps`);
  }

  /** Advances by exactly one week, so that every run gives the same town. */
  async function settle(): Promise<Answer> {
    advance(bridge.city, FRAMES_PER_WEEK);
    return client.state("/state/summary");
  }

  async function expectNoFaults(): Promise<void> {
    expect((await client.state("/state/road-anomalies")).counts).to.deep.equal({});
    expect((await client.state("/state/building-anomalies")).total).to.equal(0);
    const { countsByProblem } = await client.state("/state/problems");
    for (const problem of ["Electricity", "Water", "Sewage", "RoadNotConnected"]) {
      expect(countsByProblem).to.not.have.property(problem);
    }
    // Up to two businesses may close because they find no educated workers.
    expect(countsByProblem.Abandoned ?? 0).to.be.at.most(2);
  }
});

/** Centers of the blocks between the streets. */
function blockCenters() {
  return Array.from({ length: (COLUMNS - 1) * (ROWS - 1) }, (_, i) => ({
    x: WEST + ((i % (COLUMNS - 1)) + 0.5) * BLOCK_METERS,
    z: SOUTH + (Math.floor(i / (COLUMNS - 1)) + 0.5) * BLOCK_METERS,
  }));
}

/** Zone type with the highest demand, or null while all demand is low. */
function zoneFor({ residential, commercial, workplace }: Answer): string | null {
  const highest = Math.max(residential, commercial, workplace);
  if (highest < 30) return null;
  if (residential === highest) return "ResidentialHigh";
  return commercial === highest ? "CommercialLow" : "Industrial";
}
