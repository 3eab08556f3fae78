import { expect } from "chai";
import { startGameBridge } from "../../src/city/index.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import { FRAMES_PER_DAY, FRAMES_PER_WEEK } from "../../src/city/simulation/state/calendar.js";
import { BridgeClient, bridgeForEach, SILENT } from "./bridge.js";
import { advance, bulldozeAll, fingerprint, smallTown } from "./simulation/towns.js";

describe("command advance", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("runs a paused city for the requested weeks or days and leaves it paused", async () => {
    const { client, city } = bridge;
    const week = await client.run("advance", { weeks: 1 });
    expect(week).to.include({
      ok: true,
      stoppedBy: "weeks",
      frames: FRAMES_PER_WEEK,
      frame: FRAMES_PER_WEEK,
    });
    expect(week.gameTime).to.equal("2031-01-08T00:00:00");
    const day = await client.run("advance", { days: "2" });
    expect(day).to.include({ stoppedBy: "days", frames: Math.ceil(2 * FRAMES_PER_DAY) });
    expect(city.clock.paused).to.equal(true);
    expect((await client.state("/state/summary")).gameTime).to.match(/^2031-01-10T00:0/);
  });

  it("the reply to advance reports citizens, money, growth and new problems", async () => {
    const { client, city } = bridge;
    smallTown(city);
    const report = await client.run("advance", { weeks: 4 });
    const { citizens, money, buildings } = report;
    expect(citizens.after).to.equal(city.citizens.size).and.to.be.greaterThan(0);
    expect(
      citizens.before + citizens.births - citizens.deaths + citizens.arrivals - citizens.departures,
    ).to.equal(citizens.after);
    expect(money.after - money.before).to.be.closeTo(money.income - money.expenses, 0.01);
    expect(buildings.before).to.equal(0);
    expect(buildings.grown.byService.Residential).to.be.greaterThan(0);
    expect(buildings.grown.count).to.equal(buildings.after);
    const [grown] = buildings.grown.buildings;
    expect((await client.state(`/state/buildings/${grown.id}`)).displayName).to.equal(grown.displayName);

    bulldozeAll(city, "Wind Turbine");
    const dark = await client.run("advance", { weeks: 1 });
    const began = dark.problems.began.find(({ problem }: { problem: string }) => problem === "Electricity");
    expect(began.count).to.equal(dark.problems.standing.Electricity);
    expect(began.entities[0].entityType).to.equal("building");
    await client.run("place-building", { buildingPrefab: "Wind Turbine", position: { x: 140, z: 60 } });
    const lit = await client.run("advance", { weeks: 1 });
    expect(lit.problems.ended.map(({ problem }: { problem: string }) => problem)).to.include("Electricity");
  });

  it("the reply to advance reports abandoned buildings", async () => {
    const { client, city } = bridge;
    smallTown(city);
    advance(city, 4 * FRAMES_PER_WEEK);
    bulldozeAll(city, "Wind Turbine");
    const { buildings } = await client.run("advance", { weeks: 40 });
    expect(buildings.abandoned.count + buildings.removed).to.be.greaterThan(0);
  });

  it("advance stops when citizens or balance reach a limit, or when a problem begins", async () => {
    const { client, city } = bridge;
    smallTown(city);
    const grown = await client.run("advance", { until: { citizens: 30 } });
    expect(grown.stoppedBy).to.equal("citizens");
    expect(city.citizens.size).to.be.within(30, 36);
    const spent = await client.run("advance", { until: { balance: grown.money.after - 1 } });
    expect(spent.stoppedBy).to.equal("balance");
    expect(spent.money.after).to.be.lessThan(grown.money.after);
    bulldozeAll(city, "Wind Turbine");
    const dark = await client.run("advance", { weeks: 8, until: { problem: "Electricity" } });
    expect(dark.stoppedBy).to.equal("problem");
    expect(dark.problems.standing.Electricity).to.be.greaterThan(0);
    expect(
      (await client.run("advance", { days: 1, until: { problem: "Flood", citizens: 9999 } })).stoppedBy,
    ).to.equal("days");
  });

  it("advance stops after maxSeconds, and the bridge answers reads in the meantime", async () => {
    const { client, city } = bridge;
    smallTown(city);
    let isDone = false;
    const running = client.run("advance", { weeks: 500, maxSeconds: 0.5 }).finally(() => {
      isDone = true;
    });
    const times = new Set<string>();
    while (!isDone) times.add((await client.state("/state/summary")).gameTime);
    const report = await running;
    expect(report.stoppedBy).to.equal("maxSeconds");
    expect(report.weeks).to.be.within(0, 499);
    expect(times.size).to.be.greaterThan(2);
  });

  it("advance produces the same city as the running clock", async () => {
    const { client, city, game } = bridge;
    smallTown(city);
    await client.run("advance", { weeks: 3 });
    const advanced = fingerprint(city);
    const other = game.startCity({ seed: 7, map: "highway", paused: true });
    other.cityId = city.cityId;
    smallTown(other);
    advance(other, 3 * FRAMES_PER_WEEK);
    expect(fingerprint(other)).to.equal(advanced);
  });

  it("rejects a second advance while one runs; unloading the city stops the running one", async () => {
    const { client, game } = bridge;
    const first = client.run("advance", { weeks: 500, maxSeconds: 600, opId: "long" });
    const repeat = client.run("advance", { weeks: 500, maxSeconds: 600, opId: "long" });
    let refusal = "";
    while (refusal === "") {
      const { status, body } = await client.post("advance", { days: 0.01 });
      if (status === 500) refusal = body.error;
    }
    expect(refusal).to.include("Another advance is running");
    game.unloadCity();
    expect(await first).to.include({ stoppedBy: "stopped" });
    expect((await repeat).frames).to.equal((await first).frames);
    expect((await client.post("advance", { days: 1 })).status).to.equal(409);
  });

  it("rejects invalid limits and names the valid ones", async () => {
    const { client, city } = bridge;
    const before = fingerprint(city);
    for (const [body, words] of [
      [{}, "weeks, days or until"],
      [{ weeks: 1, days: 1 }, "cannot both be set"],
      [{ weeks: 0 }, "weeks"],
      [{ weeks: 523 }, "522"],
      [{ days: -1 }, "days"],
      [{ weeks: 1, maxSeconds: 0 }, "maxSeconds"],
      [{ weeks: 1, maxSeconds: 601 }, "600"],
      [{ until: {} }, "citizens, balance or problem"],
      [{ until: { problem: "Boredom" } }, "Boredom"],
      [{ until: 7 }, "until"],
      [{ weeks: "soon" }, "soon"],
    ] as const) {
      expect(await client.refusal("advance", body)).to.include(words);
    }
    expect(fingerprint(city)).to.equal(before);
  });
});

describe("repeated commands with an opId", () => {
  const bridge = bridgeForEach();

  it("runs a command only once if it is repeated with the same opId", async () => {
    const { client, city } = bridge;
    const road = { start: { x: 0, z: 0 }, end: { x: 80, z: 0 }, opId: "road" };
    const first = await client.run("build-road", road);
    expect(await client.run("build-road", road)).to.deep.equal(first);
    const tower = { buildingPrefab: "Water Tower", position: { x: 40, z: 100 }, opId: "tower" };
    const placed = await client.run("place-building", tower);
    const { balance } = await client.state("/state/budget");
    expect(await client.run("place-building", tower)).to.deep.equal(placed);
    expect((await client.state("/state/budget")).balance).to.equal(balance);
    expect([city.segments.all().length, city.buildings.all().length]).to.deep.equal([1, 1]);
    await client.run("bulldoze", { entityType: "building", id: placed.buildingId, opId: "away" });
    expect(
      (await client.run("bulldoze", { entityType: "building", id: placed.buildingId, opId: "away" })).ok,
    ).to.equal(true);
    const week = { weeks: 1, opId: "week" };
    const advanced = await client.run("advance", week);
    expect(await client.run("advance", week)).to.deep.equal(advanced);
    expect(city.frame).to.equal(FRAMES_PER_WEEK);
  });

  it("an opId must be text; a dry run or a rejected command does not use it up", async () => {
    const { client, city } = bridge;
    const commands = [{ type: "build-road", end: { x: 80, z: 0 } }];
    expect((await client.run("batch", { commands, opId: "one" })).dryRun).to.equal(true);
    await client.run("batch", { commands, dryRun: false, opId: "one" });
    await client.run("batch", { commands, dryRun: false, opId: "one" });
    expect(city.segments.all()).to.have.length(1);
    expect(await client.refusal("advance", { weeks: 0, opId: "two" })).to.include("weeks");
    expect((await client.run("advance", { days: 1, opId: "two" })).ok).to.equal(true);
    expect(await client.refusal("save", { opId: 7 })).to.include("opId");
  });

  it("a restart keeps used opIds; load-city keeps only those used before the city was saved", async () => {
    const { client, game, savesDirectory } = bridge;
    const road = { start: { x: 0, z: 0 }, end: { x: 80, z: 0 }, opId: "road" };
    const other = { start: { x: 0, z: 200 }, end: { x: 80, z: 200 }, opId: "other" };
    const built = await client.run("build-road", road);
    const advanced = await client.run("advance", { days: 1, opId: "day" });
    await client.run("save", { name: "One road" });
    await game.saves.settled();
    await client.run("build-road", other);
    const { hash } = await client.run("load-city", { name: "One road", discard: true });
    expect(await client.run("build-road", road)).to.deep.equal(built);
    expect(await client.run("advance", { days: 1, opId: "day" })).to.deep.equal(advanced);
    expect((await client.state("/state/hash")).hash).to.equal(hash);
    await client.run("build-road", other);
    expect(game.world?.segments.all()).to.have.length(2);

    await game.autosave();
    const onSaveFailed = (error: Error) => expect.fail(error.message);
    const restarted = new EmbeddedGame({ savesDirectory, onSaveFailed });
    await restarted.resumeCity(onSaveFailed);
    const server = await startGameBridge(restarted, { port: 0, allowedOrigins: [], log: SILENT });
    expect(await new BridgeClient(server.url).run("build-road", road)).to.deep.equal(built);
    expect(restarted.world?.segments.all()).to.have.length(2);
    await server.close();
    await restarted.close();
  });
});
