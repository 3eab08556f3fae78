import { expect } from "chai";
import { setProblem } from "../../src/city/simulation/fabric/buildings.js";
import { leadsOutside } from "../../src/city/simulation/fabric/reach.js";
import { FRAMES_PER_CYCLE, FRAMES_PER_WEEK } from "../../src/city/simulation/state/calendar.js";
import type { Building } from "../../src/city/simulation/state/entities.js";
import { remediesFor } from "../../src/city/views/remedies.js";
import { type Answer, bridgeForEach } from "./bridge.js";
import {
  advance,
  bulldozeAll,
  fingerprint,
  homesOnly,
  settleByForce,
  smallTown,
} from "./simulation/towns.js";

describe("advice that the bridge gives about a city", () => {
  const bridge = bridgeForEach({ map: "highway" });

  async function topics(): Promise<Map<string, Answer>> {
    const { advice } = await bridge.client.state("/state/advice?limit=100");
    return new Map(advice.map((row: Answer) => [row.topic, row]));
  }

  it("suggests zoning in an empty city and changes nothing", async () => {
    const { client, city } = bridge;
    await client.road(320, 300, 400, 300);
    const before = fingerprint(city);
    const row = (await topics()).get("residential demand");
    expect(row.value).to.equal((await client.state("/state/demand")).residential);
    expect(fingerprint(city)).to.equal(before);
    const [{ command, fields }] = row.commands;
    expect((await client.run(command, fields)).changedCells).to.be.greaterThan(0);
  });

  it("leads a new city to its first citizens, step by step", async () => {
    const { client, city } = bridge;
    const steps = async (): Promise<Answer[]> => {
      const { advice } = await client.state("/state/advice?limit=100");
      return advice.filter(({ unit }: Answer) => unit === "step");
    };
    const topics = (await steps()).map(({ topic }) => topic);
    expect(topics).to.deep.equal(
      ["street", "power", "water", "drains", "homes", "week"].map((name) => `first ${name}`),
    );
    expect((await steps())[1].commands, "nothing stands without a street").to.deep.equal([]);
    for (const left of topics.keys()) {
      const [step, ...later] = await steps();
      expect(later).to.have.length(topics.length - left - 1);
      for (const { command, fields } of step.commands) await client.run(command, fields);
    }
    expect(await steps()).to.deep.equal([]);
    city.paused = true;
    advance(city, 4 * FRAMES_PER_WEEK);
    expect(city.citizens.size).to.be.above(50);
    const { countsByProblem } = await client.state("/state/problems?limit=0");
    expect(countsByProblem).to.not.have.any.keys("Electricity", "Water", "Sewage", "RoadNotConnected");
  });

  it("keeps asking for a way to the highway, and lays it, when the first street does not reach it", async () => {
    const { client, city } = bridge;
    const first = async (): Promise<Answer> => (await client.state("/state/advice?limit=100")).advice[0];
    const lonely = await client.road(320, 300, 620, 300, { split: true, dryRun: true });
    expect(lonely.warnings).to.deep.equal(["The new road is not joined to any other road"]);
    await client.road(320, 300, 620, 300, { split: true });
    expect(await first()).to.include({
      topic: "first street",
      message: "Join a street to the highway. Nobody can move in without a way.",
    });
    for (const { command, fields } of (await first()).commands) await client.run(command, fields);
    expect((await first()).topic).to.equal("first power");
    const streets = city.segments.all().filter(({ prefab }) => prefab.zoning);
    expect(streets.every(({ startNodeId }) => leadsOutside(city, startNodeId))).to.equal(true);
  });

  it("proposes places that do not overlap, for clients that send all commands at once", async () => {
    const { client } = bridge;
    const steps = async (): Promise<Answer[]> => (await client.state("/state/advice?limit=100")).advice;
    for (const { command, fields } of (await steps())[0].commands) await client.run(command, fields);
    const commands = (await steps()).flatMap((step) => step.commands);
    for (const { command, fields } of commands) {
      const { warnings } = await client.run(command, fields);
      expect(
        warnings?.filter((warning: string) => warning.includes("stands on building")) ?? [],
      ).to.deep.equal([]);
    }
    expect((await client.state("/state/facilities")).total).to.equal(3);
  });

  it("lists shortages by severity, with ready-made commands", async () => {
    const { client, city } = bridge;
    smallTown(city);
    advance(city, 4 * FRAMES_PER_WEEK);
    bulldozeAll(city, "Wind Turbine");
    advance(city, FRAMES_PER_WEEK);
    const { advice, total } = await client.state("/state/advice");
    expect(total).to.be.at.least(advice.length);
    const gravities = advice.map(({ gravity }: Answer) => gravity);
    expect(gravities).to.deep.equal([...gravities].sort((a, b) => b - a));
    const dark = (await topics()).get("Electricity");
    expect(dark).to.include({
      unit: "buildings",
      value: (await client.state("/state/problems")).countsByProblem.Electricity,
    });
    expect(dark.position).to.have.all.keys("x", "y", "z");
    for (const { commands } of advice) {
      for (const { command, fields } of commands) {
        expect((await client.run(command, { ...fields, dryRun: true })).ok, command).to.equal(true);
      }
    }
    const [{ command, fields }] = dark.commands;
    expect(command).to.equal("place-building");
    await client.run(command, fields);
    expect(city.buildings.all().some(({ prefab }) => prefab.name === fields.buildingPrefab)).to.equal(true);
  });

  it("reports a missing service before happiness drops", async () => {
    const { client, city } = bridge;
    homesOnly(city);
    const wishes = async () => (await client.state("/state/problems?limit=0")).wishes;
    settleByForce(city, 400);
    expect(await wishes()).to.deep.equal([]);
    settleByForce(city, 550);
    const [early] = await wishes();
    expect(early).to.include({ service: "garbage", fromCitizens: 600, pointsLost: 0 });
    const foreseen = (await topics()).get("garbage");
    expect(foreseen).to.include({ unit: "households", value: early.householdsWithout });
    expect(foreseen.message).to.include("will cost happiness from 600 citizens");
    settleByForce(city, 900);
    const missed = (await topics()).get("garbage");
    expect((await wishes())[0].pointsLost).to.be.closeTo(2, 0.2);
    expect(missed.message).to.include("costs 2.0 points");
    expect(missed.gravity).to.be.greaterThan(foreseen.gravity);
    const [{ command, fields }] = missed.commands;
    expect(fields.buildingPrefab).to.equal("Landfill Site");
    await client.run(command, fields);
    expect((await topics()).get("garbage")?.commands ?? [], "a second one at once").to.deep.equal([]);
    advance(city, 2 * FRAMES_PER_CYCLE);
    expect((await wishes()).map(({ service }: Answer) => service)).not.to.include("garbage");
  });

  it("says what a wished service costs and what the city keeps, and asks for none that would bankrupt it", async () => {
    const { client, city } = bridge;
    homesOnly(city);
    settleByForce(city, 900);
    city.unlimitedMoney = false;
    const spend = (rest: number) => city.ledger.book("Construction", city.ledger.balanceCents / 100 - rest);
    const wish = async () => (await client.state("/state/problems?limit=0")).wishes[0];
    spend(100_000);
    const { price } = await wish();
    expect(price).to.include({
      buildingPrefab: "Landfill Site",
      constructionCost: 4_000,
      upkeepPerWeek: 160,
    });
    expect(price.isAffordable).to.equal(true);
    const rich = (await topics()).get("garbage");
    expect(rich.message).to.match(
      /Landfill Site: 4000 to build and 160 a week with the state's aid; the city (keeps|loses) \d+ a week\.$/,
    );
    expect(rich.commands[0].command).to.equal("place-building");
    await client.run("set-tax-rate", { rate: 0 });
    spend(5_000);
    expect((await wish()).price.isAffordable).to.equal(false);
    const poor = (await topics()).get("garbage");
    expect(poor.message).to.include("so it cannot pay for this yet.");
    expect(poor.commands).to.deep.equal([]);
    for (const { commands } of (await topics()).values()) {
      expect(commands.map(({ command }: Answer) => command)).to.not.include("take-loan");
    }
  });

  it("advises a city that loses money not to lower the taxes that its citizens complain about", async () => {
    const { city, client } = bridge;
    smallTown(city);
    advance(city, 2 * FRAMES_PER_WEEK);
    const home = city.buildings.all().find(({ householdIds }) => householdIds.length > 0);
    await client.run("set-tax-rate", { rate: 20 });
    setProblem(home as Building, "TaxesTooHigh", true, city.frame);
    expect((await topics()).get("TaxesTooHigh").commands.map(({ command }: Answer) => command)).to.deep.equal(
      ["set-tax-rate"],
    );
    await client.run("place-building", { buildingPrefab: "University", position: { x: -400, z: 400 } });
    expect((await topics()).get("TaxesTooHigh").commands).to.deep.equal([]);
  });

  it("proposes to zone what set-zone paints, also beside a service", async () => {
    const { city, client } = bridge;
    await client.road(320, 300, 640, 300, { split: true });
    const position = { x: 340, z: 324 };
    await client.run("place-building", { buildingPrefab: "Regular Park", position });
    const [remedy] = remediesFor(city, "NoWorkers", position);
    const { command, fields } = remedy as { command: string; fields: object };
    expect((await client.run(command, fields)).changedCells).to.be.above(0);
  });

  it("lays a pipe to a building without water if there is water to spare, and builds a tower if not", async () => {
    const { city, client } = bridge;
    smallTown(city);
    city.unlimitedMoney = true;
    await client.road(600, -300, 760, -300, { split: true });
    const position = { x: 680, z: -270 };
    const { buildingId } = await client.run("place-building", { buildingPrefab: "Police Station", position });
    advance(city, 3 * FRAMES_PER_CYCLE);
    const hasWater = () => city.buildings.at(buildingId).supply.water;
    expect(hasWater()).to.equal(false);
    const proposed = async (): Promise<Answer> => (await topics()).get("Water").commands[0];
    const { command, fields } = await proposed();
    expect(command).to.equal("connect");
    expect(fields.roadPrefab).to.equal("Water Pipe");
    await client.run(command, fields);
    advance(city, 3 * FRAMES_PER_CYCLE);
    expect(hasWater()).to.equal(true);

    for (const building of city.buildings.all().filter(({ prefab }) => prefab.civic?.waterM3)) {
      await client.run("bulldoze", { entityType: "building", id: building.id });
    }
    advance(city, 3 * FRAMES_PER_CYCLE);
    expect((await proposed()).fields.buildingPrefab).to.equal("Water Tower");
  });

  it("warns about citizens who will soon die of old age", async () => {
    const { city } = bridge;
    homesOnly(city);
    settleByForce(city, 400);
    expect([...(await topics()).keys()]).not.to.include("ageing");
    const old = city.citizens.all().slice(0, 100);
    for (const citizen of old) Object.assign(citizen, { bornFrame: city.frame - 300 * FRAMES_PER_WEEK });
    const ageing = (await topics()).get("ageing");
    expect(ageing).to.include({ value: 100, unit: "citizens" });
    expect(ageing.message).to.include("100 citizens are old");
  });

  it("reports how long the money lasts and which utility runs short", async () => {
    const { client, city } = bridge;
    smallTown(city);
    for (const x of [-400]) {
      await client.run("place-building", { buildingPrefab: "University", position: { x, z: 400 } });
    }
    advance(city, 2 * FRAMES_PER_WEEK);
    const money = (await topics()).get("money");
    expect(money.unit).to.equal("weeks");
    expect(money.value).to.be.greaterThan(0);
    expect(money.commands.map(({ command }: Answer) => command)).to.include("set-tax-rate");
    expect((await topics()).get("taxes")?.commands ?? [], "not raise and lower at once").to.deep.equal([]);
    city.ledger.book("Grants", 1000 * city.ledger.startCents);
    expect([...(await topics()).keys()], "there is money for years").to.not.include("money");
    const [power] = city.utilities.filter(({ carries }) => carries === "power");
    Object.assign(city, { utilities: [{ ...power, supply: 100, demand: 95 }] });
    const short = (await topics()).get("power");
    expect(short.value).to.equal(95);
    expect(short.commands[0].fields.buildingPrefab).to.equal("Wind Turbine");
  });

  it("warns about full storage, overloaded services and congested roads", async () => {
    const { client, city } = bridge;
    smallTown(city);
    for (const [buildingPrefab, z] of [
      ["Cemetery", -200],
      ["Fire House", -300],
    ] as const) {
      await client.run("place-building", { buildingPrefab, position: { x: 240, z } });
    }
    const named = (name: string) => city.buildings.all().find(({ prefab }) => prefab.name === name);
    Object.assign(named("Cemetery") ?? {}, { stored: 2700 });
    Object.assign(named("Fire House") ?? {}, { lastLoad: 600 });
    const [street] = city.segments.all().filter(({ prefab }) => prefab.name === "Basic Road");
    Object.assign(street?.traffic ?? {}, { volume: 2100 });
    const found = await topics();
    expect(found.get("death")).to.include({ value: 90, unit: "%" });
    expect(found.get("death").commands[0].command).to.equal("set-building-emptying");
    expect(found.get("fire").value).to.equal(200);
    expect(found.get("traffic").value).to.equal(150);
    expect(found.get("traffic").commands[0].command).to.equal("upgrade-road");
    expect(
      (await client.run("upgrade-road", found.get("traffic").commands[0].fields)).segmentIds,
    ).to.deep.equal([street?.id]);
  });
});
