import { expect } from "chai";
import { bridgeForEach } from "./bridge.js";
import { advance } from "./simulation/towns.js";

describe("the undo command", () => {
  const bridge = bridgeForEach();
  const { now } = performance;
  const tower = { buildingPrefab: "Water Tower", position: { x: 40, z: 100 }, opId: "tower" };

  afterEach(() => {
    performance.now = now;
  });

  const balance = () => bridge.city.ledger.balanceCents;
  const undo = (undoes: string) => bridge.client.run("undo", { undoes });
  const refusal = (undoes: string) => bridge.client.refusal("undo", { undoes });

  it("removes a building and pays it back, once; a dry run changes nothing", async () => {
    const { city, client } = bridge;
    const before = balance();
    await client.run("place-building", tower);
    expect(balance()).to.equal(before - 350_000);
    expect(await client.run("undo", { undoes: "tower", dryRun: true })).to.include({ refund: 3500 });
    expect(city.buildings.size).to.equal(1);
    expect(await undo("tower")).to.include({ ok: true, changes: 1, refund: 3500, balance: before / 100 });
    expect([city.buildings.size, balance()]).to.deep.equal([0, before]);
    expect(await refusal("tower")).to.contain('"tower"');
  });

  it("removes all pieces of a road, and restores the zones that were painted over", async () => {
    const { city, client } = bridge;
    const before = balance();
    await client.road(0, 0, 300, 0, { split: true, opId: "road" });
    const rectangle = { from: { x: 0, z: -40 }, to: { x: 300, z: 40 } };
    await client.run("zone-rectangle", { ...rectangle, zone: "Office", opId: "offices" });
    await client.run("zone-rectangle", { ...rectangle, zone: "Industrial", opId: "works" });
    const zones = () => new Set(city.blocks.all().flatMap(({ cells }) => [...cells]));
    expect([...zones()]).to.deep.equal([6]);
    expect(await refusal("road"), "zoned since").to.match(/^Segment \d+ has changed/);
    await undo("works");
    expect([...zones()]).to.deep.equal([7]);
    await undo("offices");
    expect([...zones()]).to.deep.equal([0]);
    expect(await undo("road")).to.include({ changes: 4, refund: 1500 });
    expect([city.segments.size, city.nodes.size, balance()]).to.deep.equal([0, 0, before]);
  });

  it("undoes a neighborhood: streets and zones together", async () => {
    const { city, client } = bridge;
    const before = balance();
    const fields = { center: { x: 0, z: 0 }, cols: 1, rows: 1, zoneMix: { Office: 1 }, opId: "quarter" };
    await client.run("build-neighborhood", fields);
    await undo("quarter");
    expect([city.segments.size, balance()]).to.deep.equal([0, before]);
  });

  it("refuses after a minute, after an advance, and if something has changed", async () => {
    const { client, city } = bridge;
    await client.run("place-building", tower);
    performance.now = () => now.call(performance) + 61_000;
    expect(await refusal("tower")).to.match(/61 s ago/);
    performance.now = now;
    const { buildingId } = await client.run("place-building", { ...tower, opId: "other" });
    await client.run("bulldoze", { entityType: "building", id: buildingId });
    expect(await refusal("other")).to.contain(`Building ${buildingId} has changed`);
    advance(city, 60 * 240 + 1);
    expect(await refusal("tower")).to.contain("advanced");
    await client.run("place-building", { ...tower, opId: "" });
    expect(await refusal("")).to.contain("can be undone");
  });
});
