import { expect } from "chai";
import { footprintsOverlap } from "../../src/city/geometry.js";
import { layStarterMap } from "../../src/city/simulation/fabric/starter-map.js";
import { buildingsOnBlock } from "../../src/city/simulation/fabric/zone-blocks.js";
import { FRAMES_PER_CYCLE } from "../../src/city/simulation/state/calendar.js";
import type { Building, NetSegment } from "../../src/city/simulation/state/entities.js";
import { bridgeForEach } from "./bridge.js";
import { advance, findFaults, fingerprint, smallTown } from "./simulation/towns.js";

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

  /** The state of the city without what every undo changes: revision, replies, and the order of ids in lists. */
  const state = () => {
    const { buildIndex: _, replies: __, ...others } = JSON.parse(fingerprint(bridge.city));
    const sorted = (_key: string, value: unknown) =>
      Array.isArray(value) && value.every((each) => Number.isInteger(each)) ? value.toSorted() : value;
    return JSON.parse(JSON.stringify(others, sorted));
  };
  const bulldoze = (entityType: string, id: number) =>
    bridge.client.run("bulldoze", { entityType, id, opId: `${entityType} ${id}` });

  it("puts back a bulldozed home and its residents, a workplace and its workers", async () => {
    const { city } = bridge;
    layStarterMap(city);
    smallTown(city);
    advance(city, 12_000);
    const home = city.buildings.all().find(({ householdIds }) => householdIds.length > 0);
    const works = city.buildings.all().find(({ workerIds }) => workerIds.length > 0);
    const before = state();
    for (const { id } of [home, works] as Building[]) {
      await bulldoze("building", id);
      expect(city.buildings.get(id)).to.equal(undefined);
      expect(await undo(`building ${id}`)).to.include({ changes: 1, refund: 0 });
      expect(state()).to.deep.equal(before);
    }
  });

  it("puts back bulldozed roads, pipes and nodes with zones, names and lots", async () => {
    const { city, client } = bridge;
    layStarterMap(city);
    smallTown(city);
    advance(city, 6000);
    const before = state();
    const street = city.segments.all().find(({ prefab }) => prefab.zoning) as NetSegment;
    const pipe = city.segments.all().find(({ prefab }) => prefab.carries === "water") as NetSegment;
    for (const { id } of [street, pipe]) {
      await bulldoze("netSegment", id);
      expect(state()).to.not.deep.equal(before);
      await undo(`netSegment ${id}`);
      expect(state()).to.deep.equal(before);
    }
    await bulldoze("netNode", street.endNodeId);
    await undo(`netNode ${street.endNodeId}`);
    expect(state()).to.deep.equal(before);
    await client.run("bulldoze-area", { center: { x: 280, z: 40 }, radius: 150, opId: "all" });
    expect(city.segments.size).to.be.below(before.segments.length);
    await undo("all");
    expect(state()).to.deep.equal(before);
  });

  it("puts back what the city has built over or torn down since, though without its residents", async () => {
    const { city, client } = bridge;
    layStarterMap(city);
    smallTown(city);
    advance(city, 12_000);
    const standing = ({ id }: Building) => city.buildings.get(id);
    const home = city.buildings.all().find(({ householdIds }) => householdIds.length > 0) as Building;
    await bulldoze("building", home.id);
    city.demand.residential = 100;
    const isOver = (other: Building) => other !== home && footprintsOverlap(other, home, 1);
    for (let cycle = 0; cycle < 12 && !city.buildings.all().some(isOver); cycle++) advance(city, 256);
    expect(city.buildings.all().some(isOver), "something has grown there").to.equal(true);
    await undo(`building ${home.id}`);
    expect(city.buildings.all().filter(isOver)).to.deep.equal([]);
    expect(standing(home)).to.equal(home);
    expect(home.householdIds.length).to.be.above(0);

    const street = city.segments
      .all()
      .find(({ blockIds }) =>
        blockIds.some((id) => buildingsOnBlock(city, city.blocks.at(id)).length > 1),
      ) as NetSegment;
    const beside = street.blockIds.flatMap((id) => buildingsOnBlock(city, city.blocks.at(id)));
    const tried = await client.run("bulldoze", { entityType: "netSegment", id: street.id, dryRun: true });
    expect(tried.warnings).to.deep.equal([
      `The ${beside.length} buildings beside it lose their zone and may go`,
    ]);
    await bulldoze("netSegment", street.id);
    // Blocks of the next street overlap: their zones would keep the buildings.
    const lots = { from: { x: 140, z: -80 }, to: { x: 420, z: 160 }, preserveOccupied: false };
    await client.run("zone-rectangle", { ...lots, zone: "Unzoned" });
    advance(city, 3 * FRAMES_PER_CYCLE);
    const [torn] = beside.filter((building) => !standing(building));
    expect(torn).to.not.equal(undefined);
    await undo(`netSegment ${street.id}`);
    expect(beside.every((building) => standing(building) === building)).to.equal(true);
    expect(beside.every(({ blockId }) => blockId !== 0)).to.equal(true);
    expect(findFaults(city)).to.deep.equal([]);
    advance(city, 2 * 4096);
    expect(beside.some((building) => building.householdIds.length > 0)).to.equal(true);
  });

  it("puts a building back under another id if its own is taken, and can still undo its construction", async () => {
    const { city, client } = bridge;
    const before = balance();
    const { buildingId } = await client.run("place-building", tower);
    await bulldoze("building", buildingId);
    const other = { ...tower, position: { x: 200, z: 100 }, opId: "other" };
    expect((await client.run("place-building", other)).buildingId).to.equal(buildingId);
    await undo(`building ${buildingId}`);
    expect(city.buildings.all().map(({ position }) => position.x)).to.deep.equal([200, 40]);
    await undo("tower");
    await undo("other");
    expect([city.buildings.size, balance()]).to.deep.equal([0, before]);
  });

  it("does not put back what something new stands on, and names it", async () => {
    const { client } = bridge;
    const { buildingId } = await client.run("place-building", tower);
    const { segmentId } = await client.road(0, 0, 300, 0);
    await bulldoze("building", buildingId);
    await bulldoze("netSegment", segmentId);
    await client.run("place-building", { ...tower, position: { x: 45, z: 105 }, opId: "there" });
    await client.run("place-building", { ...tower, position: { x: 150, z: 0 }, opId: "" });
    expect(await refusal(`building ${buildingId}`)).to.match(
      /^A Water Tower, building \d+, is in the place of/,
    );
    expect(await refusal(`netSegment ${segmentId}`)).to.match(/^A Water Tower, .* of segment \d+ now/);
    await undo("there");
    await undo(`building ${buildingId}`);
  });
});
