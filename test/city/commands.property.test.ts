import { expect } from "chai";
import fc from "fast-check";
import { READ_ROUTES } from "../../src/city/embedded-routes.js";
import { propertyRuns } from "../property-runs.js";
import { bridgeForEach } from "./bridge.js";
import { advance, findFaults, fingerprint, smallTown } from "./simulation/towns.js";

const coordinate = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 0, max: 12 }).map((i) => i * 40) },
  { weight: 3, arbitrary: fc.double({ min: -200, max: 700, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(1e300, "80", "x", null, {}) },
);
const point = fc.oneof(
  { weight: 12, arbitrary: fc.record({ x: coordinate, z: coordinate }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, 5, []) },
);
const id = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 215, max: 260 }), fc.constant("4"));
const zone = fc.constantFrom("Unzoned", "ResidentialLow", "Office", "Industrial", "CommercialLow", "Nowhere");

const road = fc.record({
  snapDistance: fc.constantFrom<unknown>(null, 8, 64, -1),
  roadPrefab: fc.constantFrom("Basic Road", "Large Road", "Highway", "Water Pipe", "Nothing"),
  start: point,
  end: point,
  name: fc.constantFrom("", "Agent Way"),
});
const paint = fc.record({
  zone,
  center: point,
  radius: fc.constantFrom(32, 100, 0),
  preserveOccupied: fc.boolean(),
});

/** Commands that support dry runs: name, and body without `dryRun`. */
const command = fc.oneof(
  fc.tuple(fc.constantFrom("build-network", "build-road"), road),
  fc.tuple(fc.constant("set-zone"), paint),
  fc.tuple(fc.constant("repair-zones-to-growables"), fc.constant({})),
  fc.tuple(
    fc.constant("repair-zone-clusters"),
    fc.record({ gridSize: fc.double({ noNaN: true, min: 0, max: 200 }) }),
  ),
  fc.tuple(
    fc.constant("place-building"),
    fc.record({ buildingPrefab: fc.constantFrom("Wind Turbine", "Landfill Site", "?"), position: point }),
  ),
  fc.tuple(fc.constant("move-building"), fc.record({ id, position: point })),
  fc.tuple(
    fc.constant("bulldoze"),
    fc.record({
      entityType: fc.constantFrom("building", "netSegment", "netNode", "tree"),
      id,
      keepNodes: fc.boolean(),
    }),
  ),
  fc.tuple(
    fc.constant("build-grid"),
    fc.record({
      origin: point,
      cols: fc.constantFrom<unknown>(1, 2, 3, 0, "2"),
      rows: fc.constantFrom(1, 2),
      spacing: fc.constantFrom(40, 80, 31),
      snapDistance: fc.constantFrom(0, 8, 64),
      rotationDegrees: fc.constantFrom(0, 30),
    }),
  ),
  fc.tuple(
    fc.constant("connect"),
    fc.record({
      from: point,
      toService: fc.constantFrom("Road", "Water"),
      maxDistance: fc.constantFrom(50, 300),
    }),
  ),
  fc.tuple(
    fc.constant("build-neighborhood"),
    fc.record({
      center: point,
      radiusOrCols: fc.constantFrom(1, 2),
      connectTo: fc.constantFrom<unknown>(null, "Road", { x: 400, z: 300 }, "Sky"),
      zoneMix: fc.constantFrom({ Office: 1 }, { ResidentialLow: 2, Industrial: 1 }, {}),
    }),
  ),
  fc.tuple(
    fc.constant("bulldoze-area"),
    fc.record({ center: point, radius: fc.constantFrom(0, 40, 120), keepNodes: fc.boolean() }),
  ),
  fc.tuple(fc.constant("set-tax-rate"), fc.record({ rate: fc.integer({ min: -2, max: 31 }) })),
  fc.tuple(
    fc.constant("batch"),
    fc.record({
      stopOnError: fc.boolean(),
      commands: fc.array(
        fc.oneof(
          road.map((fields) => ({ type: "build-road", ...fields })),
          paint.map((fields) => ({ type: "set-zone", ...fields })),
        ),
        { maxLength: 6 },
      ),
    }),
  ),
);

describe("properties of any sequence of commands", () => {
  const bridge = bridgeForEach({ map: "highway" });

  beforeEach(() => {
    smallTown(bridge.city);
    advance(bridge.city, 1024);
  });

  it("a dry run changes nothing", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 10 }), async (commands) => {
        const before = fingerprint(bridge.city);
        for (const [name, body] of commands) await bridge.client.post(name, { ...body, dryRun: true });
        expect(fingerprint(bridge.city)).to.equal(before);
      }),
      { numRuns: propertyRuns(40) },
    );
  });

  it("after any commands, the city is consistent and every read works", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 12 }), async (commands) => {
        for (const [name, body] of commands) {
          const before = fingerprint(bridge.city);
          const { status, body: answer } = await bridge.client.post(name, body);
          expect(status).to.be.oneOf([200, 500]);
          if (status === 500) {
            expect(answer).to.have.all.keys("ok", "error");
            expect(fingerprint(bridge.city)).to.equal(before);
          }
        }
        advance(bridge.city, 64);
        expect(findFaults(bridge.city)).to.deep.equal([]);
      }),
      { numRuns: propertyRuns(40) },
    );
    for (const { path } of READ_ROUTES) expect((await bridge.client.state(path)).ok).to.equal(true);
  });

  it("a command is rejected in a dry run if and only if it is rejected in a real run", async () => {
    await fc.assert(
      fc.asyncProperty(command, async ([name, body]) => {
        const dry = await bridge.client.post(name, { ...body, dryRun: true });
        const real = await bridge.client.post(name, { ...body, dryRun: false });
        if (name === "batch") return;
        expect([name, real.status, real.body.error]).to.deep.equal([name, dry.status, dry.body.error]);
      }),
      { numRuns: propertyRuns(120) },
    );
  });
});
