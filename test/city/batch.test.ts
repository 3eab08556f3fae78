import { expect } from "chai";
import { bridgeForEach } from "./bridge.js";
import { fingerprint } from "./simulation/towns.js";

const road = (x: number) => ({ type: "build-road", start: { x, z: 0 }, end: { x: x + 80, z: 0 } });

describe("a batch of commands", () => {
  const bridge = bridgeForEach();

  it("a batch is a dry run by default and reports each item", async () => {
    const { client } = bridge;
    const before = fingerprint(bridge.city);
    const dry = await client.run("batch", { commands: [road(0), road(200)] });
    expect(dry).to.include({ ok: true, allOk: true, executed: 2, dryRun: true });
    expect(dry.results[1]).to.deep.include({ index: 1, type: "build-road" });
    expect(dry.results[1].result).to.include({ ok: true, dryRun: true, roadPrefab: "Basic Road" });
    expect(fingerprint(bridge.city)).to.equal(before);
    const mixed = await client.run("batch", { commands: [road(0), { ...road(200), dryRun: false }] });
    expect(mixed.results[0].result.dryRun).to.equal(true);
    expect(mixed.results[1].result).to.include({ dryRun: false, segmentId: 1 });
    const paint = { type: "set-zone", zone: "Office", center: { x: 240, z: 0 } };
    const real = await client.run("batch", { dryRun: false, commands: [road(400), paint] });
    expect(real.results[1].result).to.include({ dryRun: false, changedCells: 80 });
    expect((await client.state("/state/summary")).network.segments).to.equal(2);
  });

  it("a batch stops at the first failure and keeps earlier changes", async () => {
    const commands = [road(0), { type: "fly" }, road(200)];
    const { status, body } = await bridge.client.post("batch", { dryRun: false, commands });
    expect(status).to.equal(200);
    expect(body).to.include({ ok: false, allOk: false, executed: 1 });
    expect(body.results[1].result.ok).to.equal(false);
    expect(body.results[1].result.error).to.include("fly");
    expect(body.results[2]).to.deep.equal({ index: 2, type: "build-road", skipped: true });
    expect((await bridge.client.state("/state/summary")).network.segments).to.equal(1);
  });

  it("a batch continues after failures if stopOnError is false", async () => {
    const bad = [
      { type: "build-network", end: { x: 80 } },
      { type: "set-zone", radius: 0 },
      "nonsense",
      null,
      {},
    ];
    const commands = [...bad, road(0), { ...road(200), roadPrefab: 7 }];
    const { status, body } = await bridge.client.post("batch", {
      dryRun: false,
      stopOnError: false,
      commands,
    });
    expect(status).to.equal(200);
    expect(body).to.include({ ok: false, executed: 1 });
    const outcomes = body.results.map(({ result }: { result: { ok: boolean } }) => result.ok);
    expect(outcomes).to.deep.equal([false, false, false, false, false, true, false]);
    expect(body.results[6].result.error).to.match(/^roadPrefab must be text/);
  });

  it("a batch takes 1 to 32 commands; any other number is rejected, and none runs", async () => {
    const { client } = bridge;
    expect(await client.refusal("batch", {})).to.include("commands");
    expect(await client.refusal("batch", { commands: [] })).to.include("commands");
    const many = (count: number) => Array.from({ length: count }, (_, i) => road(i * 100));
    expect(await client.refusal("batch", { dryRun: false, commands: many(33) })).to.include("33");
    expect((await client.state("/state/summary")).network.segments).to.equal(0);
    expect((await client.run("batch", { dryRun: false, commands: many(32) })).executed).to.equal(32);
    expect((await client.state("/state/summary")).network.segments).to.equal(32);
  });
});
