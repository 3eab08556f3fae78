import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { bridgeForEach } from "./bridge.js";
import { smallTown } from "./simulation/towns.js";

const WEEKS_PER_YEAR = 52;

describe("the command new-city", () => {
  const bridge = bridgeForEach({ map: "highway" });

  async function buildTown(): Promise<void> {
    const { client } = bridge;
    await client.road(400, 220, 400, 300);
    for (const [x, z] of [
      [422.737, 522.957],
      [423.614, 554.945],
    ] as const) {
      await client.road(400, 300, x, z);
    }
    await client.run("build-grid", { origin: { x: 160, z: 60 }, cols: 3, rows: 2 });
    await client.run("build-network", {
      roadPrefab: "Water Pipe",
      start: { x: 160, z: 140 },
      end: { x: 400, z: 140 },
    });
    const places = [
      ["Wind Turbine", 140, 160],
      ["Wind Turbine", 140, 190],
      ["Water Tower", 140, 120],
      ["Inland Water Treatment Plant 01", 140, 80],
    ] as const;
    for (const [buildingPrefab, x, z] of places) {
      await client.run("place-building", { buildingPrefab, position: { x, z } });
    }
    for (const [zone, x] of [
      ["ResidentialLow", 200],
      ["ResidentialLow", 280],
      ["CommercialLow", 360],
    ] as const) {
      await client.run("set-zone", { zone, center: { x, z: 100 }, radius: 44 });
    }
  }

  it("makes a city with the same hash from the same seed and commands", async () => {
    const { client } = bridge;
    const play = async (seed: number) => {
      const { hash } = await client.run("new-city", { seed });
      await buildTown();
      await client.run("advance", { weeks: 5 });
      await client.run("set-tax-rate", { rate: 11 });
      await client.run("advance", { weeks: 5 });
      return [hash, (await client.state("/state/hash")).hash];
    };
    const first = await play(5);
    expect(await play(5)).to.deep.equal(first);
    expect(first[0]).to.not.equal(first[1]);
    expect(await play(6)).to.not.include.members(first);
  });

  it("makes the same city over ten years, with or without a save in between @slow", async () => {
    const { client, game } = bridge;
    const begin = async () => {
      await client.run("new-city", { seed: 9, discard: true });
      await buildTown();
    };
    await begin();
    await client.run("advance", { weeks: 10 * WEEKS_PER_YEAR, maxSeconds: 600 });
    const whole = await client.state("/state/hash");
    expect(whole.frame).to.equal(10 * WEEKS_PER_YEAR * 4096);
    await begin();
    await client.run("advance", { weeks: 4 * WEEKS_PER_YEAR, maxSeconds: 600 });
    await client.run("save", { name: "Fourth Year" });
    await game.saves.settled();
    await client.run("advance", { weeks: 1 });
    const loaded = await client.run("load-city", { name: "Fourth Year" });
    expect(loaded.frame).to.equal(4 * WEEKS_PER_YEAR * 4096);
    await client.run("advance", { weeks: 6 * WEEKS_PER_YEAR, maxSeconds: 600 });
    expect(await client.state("/state/hash")).to.deep.equal(whole);
    expect((await client.state("/state/summary")).citizens.count).to.be.greaterThan(20);
  });

  it("new-city saves the replaced city unless told to discard it", async () => {
    const { client, game } = bridge;
    await client.road(0, 0, 80, 0, { name: "Agent Street" });
    const reply = await client.run("new-city", { seed: 3, map: "empty" });
    expect(reply).to.include({ seed: 3, map: "empty", paused: true, frame: 0 });
    expect((await client.state("/state/networks")).total).to.equal(0);
    const saved = (await client.state("/state/saves")).saves.at(-1);
    await client.road(0, 0, 80, 0, { name: "Discarded Street" });
    await client.run("new-city", { discard: true });
    // The first city, and each new city as it began.
    expect((await client.state("/state/saves")).saves).to.have.length(3);
    await client.run("load-city", { name: saved.name });
    const names = (await client.state("/state/networks")).segments.map(({ name }: { name: string }) => name);
    expect(names).to.include("Agent Street");
    expect(game.world?.clock.paused).to.equal(true);
  });

  it("every command sent during new-city is in exactly one city, or refused with 409", async () => {
    const { client } = bridge;
    const statuses = new Map<string, number>();
    const build = async (i: number) => {
      await new Promise((resolve) => setTimeout(resolve, 1.5 * i));
      const name = `Road ${i}`;
      const road = { name, start: { x: 0, z: 20 * i }, end: { x: 80, z: 20 * i } };
      const [command, body] =
        i % 2
          ? ["build-road", road]
          : ["batch", { dryRun: false, commands: [{ type: "build-road", ...road }] }];
      statuses.set(name, (await client.post(command, body)).status);
    };
    const replaced = client.run("new-city", { seed: 3, map: "empty" });
    await Promise.all([replaced, ...Array.from({ length: 40 }, (_, i) => build(i))]);
    const inNew = await roadNames();
    const oldest = (await client.state("/state/saves")).saves.at(-1);
    await client.run("load-city", { name: oldest.name });
    const built = [...inNew, ...(await roadNames())];
    for (const [name, status] of statuses) {
      expect([200, 409]).to.include(status);
      expect(built.filter((each) => each === name).length, `${name}: ${status}`).to.equal(
        status === 200 ? 1 : 0,
      );
    }
  });

  async function roadNames(): Promise<string[]> {
    const { segments } = await bridge.client.state("/state/networks?limit=5000");
    return segments
      .map(({ name }: { name: string }) => name)
      .filter((name: string) => name.startsWith("Road "));
  }

  it("an advance that new-city stops reports no frame that the saved city lacks", async () => {
    const { client } = bridge;
    const advanced = client.run("advance", { weeks: 500 });
    await client.state("/health");
    await client.run("new-city", { seed: 3 });
    const { stoppedBy, frame } = await advanced;
    expect(stoppedBy).to.equal("stopped");
    const saved = (await client.state("/state/saves")).saves.at(-1);
    expect((await client.run("load-city", { name: saved.name })).frame).to.equal(frame);
  });

  it("new-city works without a loaded city, and runs once per opId", async () => {
    const { client, game } = bridge;
    game.unloadCity();
    const first = await client.run("new-city", { seed: 2, opId: "episode 1" });
    await client.road(0, 0, 80, 0);
    expect(await client.run("new-city", { seed: 2, opId: "episode 1" })).to.deep.equal(first);
    expect((await client.state("/state/networks")).total).to.be.greaterThan(0);
    await client.run("new-city", { paused: false, map: "empty" });
    expect((await client.state("/state/summary")).simulation.paused).to.equal(false);
  });

  it("rejects an invalid seed or map, and keeps the city", async () => {
    const { client, city, game } = bridge;
    for (const [body, words] of [
      [{ seed: -1 }, "seed"],
      [{ seed: 1.5 }, "whole number"],
      [{ seed: 2 ** 32 }, "4294967295"],
      [{ map: "island" }, "highway or empty"],
    ] as const) {
      expect(await client.refusal("new-city", body)).to.include(words);
    }
    expect(game.world).to.equal(city);
  });
});

describe("the command load-city", () => {
  const bridge = bridgeForEach();

  it("loads a save by name", async () => {
    const { client, city, game } = bridge;
    smallTown(city);
    const { hash } = await client.state("/state/hash");
    await client.save("Before");
    await game.saves.settled();
    await client.run("advance", { weeks: 1 });
    expect((await client.state("/state/hash")).hash).to.not.equal(hash);
    expect((await client.run("load-city", { name: "Before" })).hash).to.equal(hash);
  });

  it("a crash soon after resumes the city that was loaded or begun, not the one that was left", async () => {
    const { client, city, game } = bridge;
    const hash = async (): Promise<string> => (await client.state("/state/hash")).hash;
    const resume = () =>
      game.resumeCity((error) => {
        throw error;
      });
    smallTown(city);
    await client.save("Town");
    await game.saves.settled();
    const town = await hash();
    await client.run("new-city", { seed: 3 });
    const begun = await hash();
    await resume();
    expect(await hash()).to.equal(begun);
    await client.run("load-city", { name: "Town" });
    await resume();
    expect(await hash()).to.equal(town);
  });

  it("loads the oldest automatic save, which saving the replaced city overwrites", async () => {
    const { client, game } = bridge;
    for (const street of [1, 2, 3, 4, 5]) {
      await client.road(0, 100 * street, 80, 100 * street);
      await game.autosave();
    }
    await client.road(0, 600, 80, 600);
    const oldest = (await client.state("/state/saves")).saves.at(-1);
    await client.run("load-city", { name: oldest.name });
    expect((await client.state("/state/networks")).total).to.equal(1);
    await client.run("load-city", { name: oldest.name });
    expect((await client.state("/state/networks")).total).to.equal(6);
  });

  it("loads what the save before it has written", async () => {
    const { client } = bridge;
    await client.save("Town");
    await client.road(0, 0, 80, 0);
    const [, loaded] = await Promise.all([
      client.run("save", { name: "Town" }),
      client.state("/health").then(() => client.run("load-city", { name: "Town", discard: true })),
    ]);
    expect(loaded.ok).to.equal(true);
    expect((await client.state("/state/networks")).total).to.equal(1);
  });

  it("rejects an unknown name or a damaged save, and keeps the city", async () => {
    const { client, city, game, savesDirectory } = bridge;
    await client.run("save", { name: "Whole" });
    await game.saves.settled();
    for (const name of ["", "Nothing", "../Whole", "Whole.crp"]) {
      expect(await client.refusal("load-city", { name }))
        .to.include(`"${name}"`)
        .and.include("/state/saves");
    }
    const bytes = readFileSync(join(savesDirectory, "Whole.crp"));
    writeFileSync(join(savesDirectory, "Half.crp"), bytes.subarray(0, bytes.length / 2));
    expect(await client.refusal("load-city", { name: "Half" })).to.include("Half.crp");
    expect(game.world).to.equal(city);
  });
});
