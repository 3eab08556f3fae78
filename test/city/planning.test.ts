import { expect } from "chai";
import { budgetOf } from "../../src/city/simulation/life/finance.js";
import { type Answer, bridgeForEach } from "./bridge.js";
import { advance, fingerprint, restoreSnapshot, smallTown } from "./simulation/towns.js";

const WEEK = 4096;

describe("endpoints for planning a city", () => {
  const bridge = bridgeForEach({ map: "highway" });

  beforeEach(function () {
    this.timeout(30_000);
    smallTown(bridge.city);
    advance(bridge.city, 3 * WEEK);
  });

  it("the lines of the budget sum to the balance and to the last week's totals", async () => {
    const { income, expenses, balance, history } = await bridge.client.state("/state/budget");
    const sum = (lines: Record<string, number>[], key: string) =>
      lines.reduce((all, line) => all + (line[key] as number), 0);
    const started = balance - sum(income, "total") + sum(expenses, "total");
    expect(started).to.be.closeTo(200_000, 0.01);
    expect(history).to.have.length(3);
    expect(history[2].income).to.be.closeTo(sum(income, "lastWeek"), 0.01);
    expect(history[2].expenses).to.be.closeTo(sum(expenses, "lastWeek"), 0.01);
    expect(history[2].balance - history[1].balance).to.be.closeTo(
      history[2].income - history[2].expenses,
      0.01,
    );
    expect(expenses.find(({ name }: { name: string }) => name === "Electricity").lastWeek).to.be.greaterThan(
      0,
    );
  });

  it("/state/terrain returns ground height and distance to water", async () => {
    const { city, client } = bridge;
    const land = await client.state("/state/terrain/grid");
    const wet = land.waterDepths.findIndex((depth: number) => depth > 5);
    const x = (wet % land.samplesPerRow) * land.spacingMeters - land.halfSizeMeters;
    const z = Math.floor(wet / land.samplesPerRow) * land.spacingMeters - land.halfSizeMeters;
    const { samples } = await client.state(`/state/terrain?points=${x},${z};0,0`);
    expect(samples[0]).to.include({ x, z, hasWater: true, waterHeight: city.terrain.surfaceHeight(x, z) });
    expect(samples[0].waterDepth).to.be.closeTo(land.waterDepths[wet], 0.06);
    expect(samples[1]).to.include({
      hasWater: false,
      terrainHeight: city.terrain.groundHeight(0, 0),
      waterDepth: 0,
    });
    expect((await client.state("/state/terrain?x=0&z=0")).samples).to.deep.equal([samples[1]]);
    // The samples lie on a line that runs from land into the water.
    const line = Array.from({ length: 64 }, (_, i) => `${x},${z - 32 * i}`).join(";");
    const course = (await client.state(`/state/terrain?points=${line}`)).samples;
    for (const { shoreDistance, shoreWaterHeight, hasWater, waterHeight } of course) {
      expect(shoreDistance === null).to.equal(shoreWaterHeight === null);
      if (shoreDistance !== null && hasWater) expect(shoreWaterHeight).to.equal(waterHeight);
    }
    expect(
      course.some(({ shoreDistance }: { shoreDistance: number | null }) => shoreDistance !== null),
    ).to.equal(true);
    for (const points of ["1", "1,2,3", "a,b", "1,", `${line};0,0`]) {
      const { status, body } = await client.get(`/state/terrain?points=${points}`);
      expect(status, points.slice(0, 20)).to.equal(500);
      expect(body.error).to.match(/^points must/);
    }
  });

  it("/state/statistics returns weeks in pages, newest first", async () => {
    const { total, samples } = await bridge.client.state("/state/statistics");
    expect(total).to.equal(3);
    const times = samples.map(({ gameTime }: { gameTime: string }) => gameTime);
    expect(times).to.deep.equal([...times].sort().reverse());
    expect(samples[0].citizens).to.be.greaterThan(0);
    expect(samples[0].balance).to.equal((await bridge.client.state("/state/budget")).history[2].balance);
    const second = await bridge.client.state("/state/statistics?limit=1&offset=1");
    expect(second.samples).to.deep.equal([samples[1]]);
  });

  it("/state/utilities returns supply, demand and shortages", async () => {
    const before = await bridge.client.state("/state/utilities");
    expect(before.totals.power.supply).to.be.greaterThan(before.totals.power.demand);
    expect(before.totals.power.demand).to.be.greaterThan(0);
    const power = before.networks.find(({ carries }: { carries: string }) => carries === "power");
    for (const id of power.plantIds) await bridge.client.run("bulldoze", { entityType: "building", id });
    advance(bridge.city, WEEK);
    const after = await bridge.client.state("/state/utilities");
    expect(after.totals.power.supply).to.equal(0);
  });

  it("/state/buildings/ID returns all details of a building", async () => {
    const { growables } = await bridge.client.state("/state/growables?service=Residential");
    const homes = await Promise.all(
      growables.map(({ id }: { id: number }) => bridge.client.state(`/state/buildings/${id}`)),
    );
    const residents = homes.reduce((sum, home) => sum + home.residents, 0);
    expect(residents).to.equal((await bridge.client.state("/state/summary")).citizens.count);
    expect(homes[0]).to.include({ id: growables[0].id, service: "Residential", taxRate: 9 });
    const [plant] = (await bridge.client.state("/state/facilities?service=Electricity")).facilities;
    expect(await bridge.client.state(`/state/buildings/${plant.id}`)).to.deep.include(plant);
  });

  it("/state/segments/ID returns all details of a segment", async () => {
    const [row] = (await bridge.client.state("/state/networks?service=Road&offset=30")).segments;
    const segment = await bridge.client.state(`/state/segments/${row.id}`);
    expect(segment).to.deep.include(row);
    const { start, end } = row;
    expect(segment.lengthMeters).to.be.closeTo(Math.hypot(end.x - start.x, end.z - start.z), 0.01);
    for (const id of segment.startJoins) {
      const other = await bridge.client.state(`/state/segments/${id}`);
      expect([other.startNodeId, other.endNodeId]).to.include(row.startNodeId);
    }
  });

  it("a request for an unknown id gets status 404", async () => {
    for (const path of ["/state/buildings/65000", "/state/segments/65000"]) {
      const { status, body } = await bridge.client.get(path);
      expect(status).to.equal(404);
      expect(body).to.deep.equal({ ok: false, error: body.error });
      expect(body.error).to.contain("65000");
    }
    for (const id of ["0", "-1", "1.5", "x", "12/3"]) {
      expect((await bridge.client.get(`/state/buildings/${id}`)).status).to.equal(404);
    }
    bridge.game.unloadCity();
    expect((await bridge.client.get("/state/buildings/1")).status).to.equal(409);
  });

  it("/state/budget offers one loan per bank; take-loan takes the loan, and repays it with `repay`", async () => {
    const { client } = bridge;
    const before = await client.state("/state/budget");
    const [offer] = before.loanOffers;
    await client.run("take-loan", { lender: offer.lender, dryRun: true });
    expect((await client.state("/state/budget")).balance).to.equal(before.balance);
    const taken = await client.run("take-loan", { lender: offer.lender });
    expect(taken.balance).to.be.closeTo(before.balance + offer.amount, 0.01);
    expect((await client.state("/state/budget")).loans[0]).to.include({
      lender: offer.lender,
      amount: offer.amount,
    });
    expect(await client.refusal("take-loan", { lender: offer.lender })).to.contain(offer.lender);
    expect(await client.refusal("take-loan", { lender: "Nobody" })).to.contain("Nobody");
    await client.run("take-loan", { lender: offer.lender, repay: true });
    expect((await client.state("/state/budget")).loans).to.deep.equal([]);
  });

  it("/state/traffic returns the traffic of each road, densest first", async () => {
    const { client } = bridge;
    const whole = await client.state("/state/traffic?limit=2000");
    const { countsByService } = await client.state("/state/networks?limit=0");
    expect(whole.total).to.equal(countsByService.Road);
    expect(whole.trafficFlowPercent).to.be.within(0, 100);
    const inSteps = Object.values(whole.histogram as Record<string, number>);
    expect(inSteps.reduce((sum, count) => sum + count, 0)).to.equal(whole.total);
    const densities = whole.segments.map(({ density }: Answer) => density);
    expect(densities).to.deep.equal([...densities].sort((a, b) => b - a));
    const [{ segmentId, density, position }] = whole.segments;
    expect(density).to.be.above(0);
    const { traffic } = await client.state(`/state/segments/${segmentId}`);
    expect(traffic.densityPercent).to.equal(density);
    const near = await client.state(`/state/traffic?x=${position.x}&z=${position.z}&radius=50`);
    expect(near.segments.map((row: Answer) => row.segmentId)).to.include(segmentId);
    expect(near.total).to.be.below(whole.total);
    expect((await client.state(`/state/traffic?minDensity=${density + 1}`)).total).to.equal(0);
    const { cells } = await client.state("/state/layer?layer=traffic");
    expect(cells.length).to.be.above(10);
    for (const { value } of cells) expect(value).to.be.within(0, 100);
  });

  it("/state/areas offers tiles beside owned land; bought tiles are saved with the city", async () => {
    const { client, city } = bridge;
    city.unlimitedMoney = false;
    const { total, ownedAreaCount, areas } = await client.state("/state/areas");
    expect([total, ownedAreaCount]).to.deep.equal([25, 1]);
    const owned = areas.find((area: Answer) => area.owned);
    expect(owned).to.deep.include({ tileX: 2, tileZ: 2, purchasable: false, price: 0 });
    expect(owned.bounds).to.deep.equal({ minX: -960, maxX: 960, minZ: -960, maxZ: 960 });
    const offered = areas.filter((area: Answer) => area.purchasable);
    expect(offered.map(({ tileX, tileZ }: Answer) => `${tileX},${tileZ}`)).to.deep.equal([
      "2,1",
      "1,2",
      "3,2",
      "2,3",
    ]);
    const before = budgetOf(city).balance;
    const dry = await client.run("unlock-area", { x: -1000, z: 0, dryRun: true });
    const bought = await client.run("unlock-area", { x: -1000, z: 0 });
    expect(bought).to.deep.include({ tileX: 1, tileZ: 2, owned: true, price: dry.price });
    expect(before - budgetOf(city).balance)
      .to.equal(bought.price)
      .and.be.above(0);
    for (const [body, error] of [
      [{ tileX: 1, tileZ: 2 }, /already owned/],
      [{ tileX: 4, tileZ: 4 }, /does not border/],
      [{ tileX: 5, tileZ: 0 }, /tileX must be 0 to 4/],
      [{ tileX: 1.5, tileZ: 0 }, /whole number/],
      [{ x: 8000, z: 0 }, /tileX/],
    ] as const) {
      expect(await client.refusal("unlock-area", body)).to.match(error);
    }
    const restored = restoreSnapshot(JSON.parse(fingerprint(city)));
    expect([...restored.areas]).to.deep.equal([12, 11]);
    city.unlimitedMoney = true;
    for (let tileX = 0; tileX < 5; tileX++) {
      for (const tileZ of [2, 1]) await client.post("unlock-area", { tileX, tileZ });
    }
    for (const tileX of [0, 1, 2, 3, 4]) await client.post("unlock-area", { tileX, tileZ: 1 });
    expect((await client.state("/state/areas")).ownedAreaCount).to.equal(9);
    expect(await client.refusal("unlock-area", { tileX: 2, tileZ: 3 })).to.match(/9 areas/);
    await client.run("unlock-area", { tileX: 2, tileZ: 3, ignoreMaxAreaCount: true });
  });
});
