import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { BUILDING_PREFABS } from "../../src/city/simulation/catalogue/building-prefabs.js";
import { bridgeForEach, eventually } from "./bridge.js";
import { advance, fingerprint } from "./simulation/towns.js";

describe("unknown fields of a command", () => {
  const bridge = bridgeForEach();

  it("the response lists unknown fields at any depth", async () => {
    const { client } = bridge;
    const clean = await client.road(0, 0, 80, 0);
    expect(clean).to.not.have.property("warnings");
    const start = { x: 80, z: 0, elevation: 10 };
    const answer = await client.run("build-road", { start, end: { x: 160, z: 0 }, roadprefab: "Highway" });
    expect(answer.ok).to.equal(true);
    expect(answer.warnings).to.have.length(2);
    expect(answer.warnings[0]).to.contain("start.elevation");
    expect(answer.warnings[1]).to.contain("roadprefab");
    expect((await client.run("set-simulation-speed", { speed: 2, dryRun: true })).warnings[0]).to.contain(
      "dryRun",
    );
    const many = Object.fromEntries([...Array(500).keys()].map((i) => [`field${i}`, i]));
    expect((await client.run("set-simulation-speed", many)).warnings).to.have.length(20);
  });

  it("the response lists unknown fields inside a field that takes an object, text or null", async () => {
    const { client } = bridge;
    await client.road(-160, -40, -160, 40);
    const body = { cols: 1, rows: 1, zoneMix: { Office: 1 }, dryRun: true };
    const warningsFor = async (connectTo: unknown) =>
      (await client.run("build-neighborhood", { ...body, connectTo })).warnings;
    const unknown = "Unknown field connectTo.service was ignored";
    expect(await warningsFor({ x: -160, z: 40, service: "Road" })).to.deep.equal([unknown]);
    for (const known of [{ x: -160, z: 40 }, "Road", null])
      expect(await warningsFor(known)).to.equal(undefined);
  });

  it("the response to a batch lists unknown fields for each item", async () => {
    const end = { x: 80, z: 0 };
    const commands = [
      { type: "build-road", end },
      { type: "build-road", end, lanes: 6 },
    ];
    const { results } = await bridge.client.run("batch", { commands });
    expect(results[0].result).to.not.have.property("warnings");
    expect(results[1].result.warnings).to.deep.equal(["Unknown field lanes was ignored"]);
  });
});

describe("city commands sent over HTTP", () => {
  const bridge = bridgeForEach();
  const tower = { buildingPrefab: "Water Tower", position: { x: 40, z: 100 } };

  it("builds a road with its zone blocks", async () => {
    const built = await bridge.client.road(0, 0, 80, 0, { name: "Agent Street" });
    expect(built.message).to.be.a("string");
    expect(built).to.deep.include({
      ok: true,
      dryRun: false,
      segmentId: 1,
      startNodeId: 1,
      endNodeId: 2,
      roadPrefab: "Basic Road",
    });
    expect(await bridge.client.state("/state/summary")).to.deep.include({
      buildIndex: 4,
      network: { nodes: 2, segments: 1, lanes: 6 },
    });
    expect(await bridge.client.state("/state/zones")).to.include({ zoneBlockCount: 4, totalCells: 80 });
    const [segment] = (await bridge.client.state("/state/networks")).segments;
    expect(segment).to.include({ name: "Agent Street", startNodeId: 1, endNodeId: 2 });
  });

  it("reuses a node within 2 m", async () => {
    await bridge.client.road(0, 0, 80, 0);
    expect((await bridge.client.road(80.9, 1, 160, 0)).startNodeId).to.equal(2);
    expect((await bridge.client.road(80, 2.5, 160, 80)).startNodeId).to.equal(4);
  });

  it("rejects roads that are too short, off the map, of an unknown prefab or at a full node", async () => {
    const { client } = bridge;
    const to = (x: number) => ({ end: { x, z: 0 } });
    expect(await client.refusal("build-road", to(3.9)))
      .to.include("too short")
      .and.include("3.9");
    expect(await client.refusal("build-road", {})).to.include("too short");
    expect(await client.refusal("build-road", { roadPrefab: "Sky Road", ...to(80) })).to.include("Sky Road");
    expect(await client.refusal("build-road", { roadPrefab: "basic road", ...to(80) })).to.include(
      "basic road",
    );
    expect(await client.refusal("build-road", to(1e300))).to.include("1e+300");
    expect((await client.run("build-road", to(4))).ok).to.equal(true);
    for (let i = 0; i < 7; i++) await client.road(0, 0, Math.cos(i) * 90, Math.sin(i) * 90 + 200);
    expect(await client.refusal("build-road", { end: { x: -90, z: 0 } })).to.include("8");
  });

  it("rejects a field of the wrong type, names it, and changes nothing", async () => {
    const before = fingerprint(bridge.city);
    for (const [command, body, field] of [
      ["build-road", { roadPrefab: 5 }, "roadPrefab"],
      ["build-road", { start: [0, 0] }, "start"],
      ["build-road", { start: { x: "east" } }, "start.x"],
      ["build-road", { dryRun: "true" }, "dryRun"],
      ["build-road", { dryRun: null }, "dryRun"],
      ["set-zone", { radius: true }, "radius"],
      ["set-zone", { zone: ["Office"] }, "zone"],
      ["repair-zone-clusters", { gridSize: {} }, "gridSize"],
      ["repair-zones-to-growables", { dryRun: 1 }, "dryRun"],
      ["place-building", { angleDegrees: "north" }, "angleDegrees"],
      ["move-building", { id: "x" }, "id"],
      ["set-building-active", { id: 1, active: "no" }, "active"],
      ["bulldoze", { entityType: 4 }, "entityType"],
      ["save", { name: 5 }, "name"],
      ["set-simulation-speed", { speed: "fast" }, "speed"],
      ["set-tax-rate", { rate: 9, level: [] }, "level"],
      ["batch", { commands: "build-road" }, "commands"],
    ] as const) {
      expect(await bridge.client.refusal(command, body)).to.match(new RegExp(`^${field} must be`));
    }
    const overflow = await bridge.client.postText("set-zone", '{"center":{"x":1e999}}');
    expect(overflow.body.error).to.match(/^center.x must be a number/);
    expect(fingerprint(bridge.city)).to.equal(before);
  });

  it("accepts numbers as text and ignores unknown fields", async () => {
    const built = await bridge.client.run("build-road", { end: { x: "80", y: "12" }, colour: "red" });
    expect(built.segmentId).to.equal(1);
    expect((await bridge.client.state("/state/networks")).segments[0].end).to.include({ x: 80, y: 60 });
  });

  it("paints zones", async () => {
    await bridge.client.road(0, 0, 80, 0);
    const center = { x: 40, z: 0 };
    expect(await bridge.client.run("set-zone", { dryRun: true, zone: "Office", center })).to.deep.include({
      dryRun: true,
      zone: "Office",
      preserveOccupied: true,
      matchingBlocks: 4,
      skippedOccupiedBlocks: 0,
    });
    const painted = { dryRun: false, zone: "Office", touchedBlocks: 4, changedCells: 80 };
    expect(await bridge.client.run("set-zone", { zone: "Office", center })).to.deep.include(painted);
    const again = await bridge.client.run("set-zone", { zone: "Office", center });
    expect(again).to.include({ touchedBlocks: 4, changedCells: 0 });
    const nowhere = await bridge.client.run("set-zone", { center: { x: 3000, z: 0 } });
    expect(nowhere).to.include({ ok: true, zone: "ResidentialLow", touchedBlocks: 0, changedCells: 0 });
    expect((await bridge.client.run("set-zone", { radius: 256, center })).touchedBlocks).to.equal(4);
  });

  it("rejects an invalid radius or zone, and reports the radius if both are invalid", async () => {
    const { client } = bridge;
    for (const radius of [0, -1, 257]) {
      expect(await client.refusal("set-zone", { radius, zone: "?" }))
        .to.include(`${radius}`)
        .and.include("radius");
    }
    for (const zone of ["Commercial", "office", "Distant", ""]) {
      expect(await client.refusal("set-zone", { zone })).to.include(`"${zone}"`);
    }
  });

  it("set-zone keeps the zones under buildings unless preserveOccupied is false", async () => {
    await bridge.client.road(0, 0, 80, 0);
    await bridge.client.run("place-building", { ...tower, position: { x: 32, z: 80 } });
    const painting = { zone: "Office", center: { x: 40, z: 0 } };
    const kept = await bridge.client.run("set-zone", painting);
    expect(kept.skippedOccupiedBlocks).to.be.greaterThan(0).and.be.lessThan(4);
    expect(kept.changedCells).to.equal((4 - kept.skippedOccupiedBlocks) * 20);
    const all = await bridge.client.run("set-zone", { ...painting, preserveOccupied: false });
    expect(all).to.include({ skippedOccupiedBlocks: 0, changedCells: kept.skippedOccupiedBlocks * 20 });
  });

  it("repairs zones", async () => {
    const { client } = bridge;
    for (let i = 0; i < 3; i++) await client.road(i * 80, 0, (i + 1) * 80, 0);
    const paint = (zone: string, x: number, z: number, radius: number) =>
      client.run("set-zone", { zone, center: { x, z }, radius, preserveOccupied: false });
    await paint("ResidentialLow", 120, 0, 256);
    await paint("Office", 20, 24, 1);
    const growables = await client.run("repair-zones-to-growables", { dryRun: true });
    expect(growables).to.deep.include({
      inspectedBlocks: 12,
      repairableBlocks: 0,
      skippedMixedUseBlocks: 0,
      changedCells: 0,
    });
    const dry = await client.run("repair-zone-clusters", { dryRun: true, gridSize: 500 });
    expect(dry).to.include({
      gridSize: 160,
      includePatchy: true,
      fillUnzoned: true,
      preferGrowableZone: true,
    });
    expect(dry).to.include({ repairedBlocks: 0, changedCells: 0 });
    expect(dry.repairableClusters).to.equal(1);
    const real = await client.run("repair-zone-clusters", { gridSize: 160 });
    expect(real).to.include({ clusterCount: dry.clusterCount, repairedBlocks: 1, changedCells: 20 });
    expect((await client.state("/state/zones")).zones).to.have.length(1);
  });

  it("places, moves and bulldozes a building", async () => {
    const { client } = bridge;
    const dry = await client.run("place-building", { ...tower, dryRun: true });
    expect(dry)
      .to.include({ ok: true, dryRun: true, buildingPrefab: "Water Tower", constructionCost: 3500 })
      .and.not.property("buildingId");
    const placed = await client.run("place-building", { ...tower, angleDegrees: 90 });
    expect(placed).to.deep.include({
      buildingId: 1,
      buildingPrefab: "Water Tower",
      service: "Water",
      subService: "None",
      constructionCost: 3500,
    });
    const to = { id: 1, position: { x: 140, z: -220 } };
    expect(await client.run("move-building", { ...to, dryRun: true })).to.include({ id: 1, dryRun: true });
    const moved = await client.run("move-building", to);
    expect(moved).to.include({ oldBuildingId: 1, newBuildingId: 2, buildingPrefab: "Water Tower" });
    expect(moved.position).to.deep.equal({ x: 140, y: 60, z: -220 });
    const [row, ...others] = (await client.state("/state/facilities")).facilities;
    expect(others).to.deep.equal([]);
    expect(row).to.deep.include({ id: 2, angleDegrees: 90, position: moved.position });
    expect(await client.run("bulldoze", { entityType: "building", id: 2 })).to.deep.include({
      dryRun: false,
      entityType: "building",
      id: 2,
    });
    expect((await client.state("/state/facilities")).total).to.equal(0);
  });

  it("switches a building off and on", async () => {
    const { client, city } = bridge;
    await client.run("place-building", tower);
    advance(city, 4096);
    const off = await client.run("set-building-active", { id: 1, active: false });
    expect(off).to.include({ id: 1, active: false, prefab: "Water Tower", afterFlags: "Created, Completed" });
    expect(off.beforeFlags).to.include("Active");
    const row = (await client.state("/state/facilities")).facilities[0];
    expect(row.active).to.equal(false);
    expect(row.problems).to.include("TurnedOff");
    const on = await client.run("set-building-active", { id: 1 });
    expect(on.afterFlags).to.include("Active");
    expect((await client.state("/state/facilities")).facilities[0].active).to.equal(true);
  });

  it("rejects buildings that it cannot place, find or move", async () => {
    const { client } = bridge;
    expect(await client.refusal("place-building", {})).to.match(/prefab/);
    expect(await client.refusal("place-building", { buildingPrefab: "Moon Base" })).to.include("Moon Base");
    const broken = BUILDING_PREFABS.find(({ blocked }) => blocked)?.name;
    expect(await client.refusal("place-building", { buildingPrefab: broken })).to.include(broken);
    const far = { ...tower, position: { x: 1e9, z: 0 } };
    expect(await client.refusal("place-building", far)).to.include("1000000000");
    for (const command of ["move-building", "set-building-active"]) {
      expect(await client.refusal(command, { id: 77 })).to.include("77");
      for (const id of [undefined, 0, -4, 1.5, 65_536]) {
        expect(await client.refusal(command, { id })).to.include("65535");
      }
    }
  });

  it("builds on bad sites with a warning, or rejects them if strict is set", async () => {
    const { client, city } = bridge;
    const { buildingId } = await client.run("place-building", tower);
    await client.run("build-road", { start: { x: 600, z: 600 }, end: { x: 680, z: 600 } });
    const warningsOf = async (buildingPrefab: string, position: object) => {
      const body = { buildingPrefab, position };
      const before = fingerprint(city);
      const { warnings } = await client.run("place-building", { ...body, dryRun: true });
      const refusal = await client.refusal("place-building", { ...body, strict: true });
      for (const warning of warnings) expect(refusal).to.include(warning);
      expect(fingerprint(city)).to.equal(before);
      expect((await client.run("place-building", body)).warnings).to.deep.equal(warnings);
      return warnings.join("; ");
    };
    expect(await warningsOf("Coal Power Plant", { x: tower.position.x + 6, z: tower.position.z })).to.include(
      `on building ${buildingId}, a Water Tower`,
    );
    expect(await warningsOf("Fire House", { x: 640, z: 604 })).to.match(/on segment \d+, a Two-Lane Road/);
    expect(await warningsOf("Fire House", { x: 640, z: 800 })).to.match(
      /nearest, segment \d+, is 200 m away/,
    );
    expect(await warningsOf("Water Intake", { x: -400, z: 0 }))
      .to.include("No shore")
      .and.include("No water pipe");
    expect(await warningsOf("Medical Clinic", { x: -700, z: 0 })).to.include("No power");
    expect(await warningsOf("H1 4x4 Office02", { x: -900, z: 0 })).to.include("not zoned Office");
  });

  it("warns about a road through water and adds no zone blocks there", async () => {
    const { client, city } = bridge;
    let x = 900;
    while (city.terrain.surfaceHeight(x, 0) - city.terrain.groundHeight(x, 0) < 15) x += 16;
    const ends = { start: { x, z: 0 }, end: { x: x + 40, z: 0 } };
    const blocks = city.blocks.all().length;
    const { warnings } = await client.run("build-road", ends);
    expect(warnings.join()).to.match(/water up to \d+\.\d m deep/);
    expect(city.blocks.all().length).to.equal(blocks);
    expect(await client.run("build-road", { ...ends, roadPrefab: "Basic Road Bridge" })).to.not.have.property(
      "warnings",
    );
  });

  it("builds nothing off the map", async () => {
    const { client } = bridge;
    const { buildingId } = await client.run("place-building", tower);
    const before = fingerprint(bridge.city);
    const off = { x: 11_000, z: 0 };
    for (const [command, body] of [
      ["place-building", { buildingPrefab: "Wind Turbine", position: off }],
      ["move-building", { id: buildingId, position: off }],
      ["build-grid", { origin: off }],
      ["connect", { from: off }],
      ["build-neighborhood", { center: off, zoneMix: { Office: 1 } }],
      ["bulldoze-area", { center: off, radius: 9 }],
      ["set-zone", { center: off }],
    ] as const) {
      expect(await client.refusal(command, body), command).to.include("off the map");
    }
    expect(fingerprint(bridge.city)).to.equal(before);
  });

  it("disables the broken assets; a second call changes nothing", async () => {
    const first = await bridge.client.run("disable-blocked-assets");
    expect(first).to.include({ ok: true, total: 1, disabled: 1 });
    expect(first.assets[0]).to.include({ wasEnabled: true, isEnabled: false });
    expect(first.assets[0]).to.have.all.keys(
      "package",
      "name",
      "fullName",
      "path",
      "wasEnabled",
      "isEnabled",
    );
    expect(await bridge.client.run("disable-blocked-assets")).to.include({ total: 1, disabled: 0 });
  });

  it("bulldozes a road with its unused nodes and zone blocks", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    await client.road(80, 0, 160, 0);
    const removal = { entityType: "netSegment", id: 1 };
    expect(await client.run("bulldoze", { ...removal, dryRun: true })).to.include({
      keepNodes: false,
      dryRun: true,
    });
    expect(await client.run("bulldoze", removal)).to.include({ ...removal, keepNodes: false });
    expect((await client.state("/state/summary")).network).to.include({ nodes: 2, segments: 1 });
    expect((await client.state("/state/zones")).zoneBlockCount).to.equal(4);
    await client.run("bulldoze", { entityType: "netSegment", id: 2, keepNodes: true });
    expect((await client.state("/state/summary")).network).to.include({ nodes: 2, segments: 0 });
    expect((await client.state("/state/zones")).zoneBlockCount).to.equal(0);
    await client.road(80, 0, 160, 0);
    await client.run("bulldoze", { entityType: "netNode", id: 2 });
    expect((await client.state("/state/summary")).network).to.include({ nodes: 0, segments: 0 });
  });

  it("rejects bulldozing unknown ids", async () => {
    const { client } = bridge;
    expect(await client.refusal("bulldoze", {})).to.include("65535");
    expect(await client.refusal("bulldoze", { entityType: "castle" })).to.include("65535");
    const unknown = await client.refusal("bulldoze", { entityType: "castle", id: 3 });
    expect(unknown).to.include("castle").and.include("netSegment");
    for (const entityType of ["building", "netSegment", "netNode"]) {
      expect(await client.refusal("bulldoze", { entityType, id: 9 })).to.include("9");
    }
  });

  it("saves in the background, only once at a time", async () => {
    const { client } = bridge;
    const { body } = await client.post("save", { name: "a/b:c.." });
    expect(body).to.include({ ok: true, saveName: "a_b_c__", isSaving: true });
    expect(body.path).to.equal(join(bridge.savesDirectory, "a_b_c__.crp"));
    await eventually(
      () => client.state("/state/saves"),
      ({ saves }) => saves.length === 1,
    );
    const { saves } = await client.state("/state/saves");
    expect(saves[0]).to.include({ name: "a_b_c__", path: body.path });
    expect(saves[0].length).to.be.greaterThan(0);
    expect(saves[0].lastWriteTimeUtc).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
    await bridge.game.saves.settled();
    const both = await Promise.all([
      client.post("save", { name: "one" }),
      client.post("save", { name: "two" }),
    ]);
    expect(both.map(({ status }) => status)).to.deep.equal([200, 500]);
    await bridge.game.saves.settled();
    expect((await client.run("save", { name: "  " })).saveName).to.equal("AgentAutoSave");
    await bridge.game.saves.settled();
    expect(existsSync(join(bridge.savesDirectory, "AgentAutoSave.crp"))).to.equal(true);
    expect((await client.state("/state/saves")).saves[0].name).to.equal("AgentAutoSave");
  });

  it("sets speed and pause together", async () => {
    const set = (body: object) => bridge.client.run("set-simulation-speed", body);
    expect(await set({ speed: 9 })).to.include({ paused: false, selectedSpeed: 3, finalSpeed: 3 });
    expect(await set({ speed: 2.9 })).to.include({ selectedSpeed: 2 });
    expect(await set({ speed: 0 })).to.include({ selectedSpeed: 1 });
    expect(await set({ speed: 2, paused: true })).to.include({
      paused: true,
      selectedSpeed: 2,
      finalSpeed: 0,
    });
    expect((await bridge.client.state("/state/summary")).simulation).to.deep.equal({
      paused: true,
      selectedSpeed: 2,
      finalSpeed: 0,
    });
    expect(await set({ paused: true })).to.include({ paused: true, selectedSpeed: 2 });
    expect(await set({})).to.include({ paused: false, selectedSpeed: 1 });
  });

  it("sets tax rates for one or many rows", async () => {
    const rows = async (body: object) =>
      (await bridge.client.run("set-tax-rate", { rate: 11, dryRun: true, ...body })).changed;
    expect(await rows({})).to.equal(150);
    expect(await rows({ service: "Zoned", subService: "All", level: "all" })).to.equal(150);
    expect(await rows({ service: "Residential" })).to.equal(40);
    expect(await rows({ service: "commercial" })).to.equal(46);
    expect(await rows({ service: "Industrial" })).to.equal(35);
    expect(await rows({ service: "OFFICE" })).to.equal(29);
    expect(await rows({ service: "Commercial", subService: "commerciallow" })).to.equal(11);
    for (const level of ["Level1", "level1", "0", 0]) {
      expect(await rows({ service: "Commercial", level })).to.equal(8);
    }
    const real = await bridge.client.run("set-tax-rate", { rate: "11.9", service: "Commercial" });
    expect(real).to.include({ rate: 11, changed: 46, dryRun: false });
    expect(real.taxRates[0]).to.deep.equal({
      service: "Commercial",
      subService: "CommercialLow",
      level: "Level1",
      scope: "uiTaxSlider",
      before: 9,
      after: 11,
    });
    const { aggregateTaxRates, taxRates } = await bridge.client.state("/state/economy");
    const raised = (table: { rate: number }[]) => table.filter(({ rate }) => rate === 11).length;
    expect([raised(aggregateTaxRates), raised(taxRates)]).to.deep.equal([2, 30]);
  });

  it("rejects an invalid tax rate or filter, and reports the rate if both are invalid", async () => {
    const refusal = (body: object) => bridge.client.refusal("set-tax-rate", body);
    expect(await refusal({})).to.include("-1");
    expect(await refusal({ rate: 30, service: "Bakery" })).to.include("30");
    expect(await refusal({ rate: 9, service: "Bakery" })).to.include("Bakery");
    expect(await refusal({ rate: 9, subService: "Bakery" })).to.include("Bakery");
    expect(await refusal({ rate: 9, level: "Level6" })).to.include("Level6");
    expect(await refusal({ rate: -0.5 })).to.include("-0.5");
    expect(await refusal({ rate: 9, service: "Road" })).to.include("Road");
    expect(await refusal({ rate: 9, service: "Office", subService: "CommercialLow" })).to.include("Office");
  });
});
