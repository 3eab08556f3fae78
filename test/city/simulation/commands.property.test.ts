import { expect } from "chai";
import fc from "fast-check";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { COMMAND_ROUTES } from "../../../src/city/embedded-routes.js";
import { RefusedError } from "../../../src/city/refusal.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { propertyRuns } from "../../property-runs.js";
import { advance, findFaults, fingerprint, newCity, restoreSnapshot, smallTown } from "./towns.js";

/** Coordinates in and near the small town, from a small set so that they often coincide, and a few extreme ones. */
const coordinate = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1, max: 11 }).map((i) => i * 40) },
  { weight: 4, arbitrary: fc.double({ min: -100, max: 600, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, 1e300, -9000, 20_000) },
);
const point = fc.record({ x: coordinate, z: coordinate });
const position = fc.record({ x: coordinate, y: fc.constantFrom(0, 60), z: coordinate });
/** Ids of buildings (1 to 30), of the town's nodes and segments (215 to 250), and invalid ids. */
const id = fc.oneof(
  fc.integer({ min: 1, max: 30 }),
  fc.integer({ min: 215, max: 250 }),
  fc.constantFrom(0, -1, 1.5, 65_536),
);
const dryRun = fc.boolean();

/** Type of a command, and the fields of its body. */
type Call = { readonly type: string } & Record<string, unknown>;

const command: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("build-network"),
      dryRun,
      roadPrefab: fc.constantFrom(
        "Basic Road",
        "Large Road",
        "Highway",
        "Water Pipe",
        "Power Line",
        "Heating Pipe",
        "?",
      ),
      start: position,
      end: position,
      name: fc.constantFrom("", "Agent Street"),
      snapDistance: fc.constantFrom(null, 0, 8, 64, 65, Number.NaN),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("set-zone"),
      dryRun,
      preserveOccupied: fc.boolean(),
      zone: fc.constantFrom(
        "ResidentialLow",
        "ResidentialHigh",
        "CommercialLow",
        "Industrial",
        "Unzoned",
        "?",
      ),
      center: point,
      radius: fc.constantFrom(0, 30, 120, 256, 300),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("place-building"),
      dryRun,
      buildingPrefab: fc.constantFrom(
        "Wind Turbine",
        "Water Tower",
        "Landfill Site",
        "L1 2x2 Detached01",
        "?",
      ),
      position: point,
      angleDegrees: fc.constantFrom(0, 90, -725.5, Number.NaN),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("bulldoze"),
      dryRun,
      entityType: fc.constantFrom("building", "netSegment", "netNode", "tree"),
      id,
      keepNodes: fc.boolean(),
    }),
  },
  fc.record({
    type: fc.constant("move-building"),
    dryRun,
    id,
    position: point,
    angleDegrees: fc.constantFrom(null, 45),
  }),
  fc.record({ type: fc.constant("set-building-active"), id, active: fc.boolean() }),
  fc.record({ type: fc.constant("repair-zones-to-growables"), dryRun }),
  fc.record({
    type: fc.constant("repair-zone-clusters"),
    dryRun,
    includePatchy: fc.boolean(),
    fillUnzoned: fc.boolean(),
    preferGrowableZone: fc.boolean(),
    gridSize: fc.constantFrom(0, 80, 500),
    minMinorityCells: fc.constantFrom(0, 3),
    minUnzonedCells: fc.constantFrom(0, 6),
  }),
  fc.record({
    type: fc.constant("set-tax-rate"),
    dryRun,
    rate: fc.constantFrom(-1, 0, 9, 28.7, 30),
    service: fc.constantFrom("", "Residential", "Road"),
    subService: fc.constantFrom("", "CommercialLow"),
    level: fc.constantFrom("", 1, 5),
  }),
  fc.record({
    type: fc.constant("set-simulation-speed"),
    paused: fc.boolean(),
    speed: fc.integer({ min: -9, max: 9 }),
  }),
  fc.record({ type: fc.constant("disable-blocked-assets") }),
);

/** A random command, and the number of frames to simulate after it. */
const step = fc.record({ command, frames: fc.constantFrom(0, 0, 300, 2000) });

/** Snapshot of a small town after some growth. Every run starts from a copy of it. */
let town: string;

function newTown(): World {
  return restoreSnapshot(JSON.parse(town));
}

function routeOf(type: string): typeof bulldoze {
  const route = COMMAND_ROUTES.find(({ path }) => path === `/commands/${type}`);
  if (route === undefined) throw new Error(`no command ${type}`);
  return route as typeof bulldoze;
}

function tryApply(city: World, { type, ...body }: Call): "done" | "refused" {
  try {
    routeOf(type).run(city, body);
    return "done";
  } catch (error) {
    expect(error instanceof RefusedError, String(error)).to.equal(true);
    expect((error as Error).message).to.not.equal("");
    return "refused";
  }
}

describe("a city after any sequence of commands", () => {
  before(() => {
    const city = newCity();
    smallTown(city);
    advance(city, 6000);
    expect(city.citizens.size).to.be.greaterThan(20);
    town = fingerprint(city);
  });

  it("any sequence of commands leaves the city consistent", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const city = newTown();
        for (const { command: each, frames } of steps) {
          tryApply(city, each);
          expect(findFaults(city)).to.deep.equal([]);
          advance(city, frames);
        }
        expect(findFaults(city)).to.deep.equal([]);
      }),
      { numRuns: propertyRuns(60) },
    );
  }).timeout(120_000);

  it("undoing commands in any order leaves the city consistent", () => {
    const undone = fc.array(fc.nat(40), { maxLength: 8 });
    fc.assert(
      fc.property(fc.array(fc.tuple(step, undone), { maxLength: 40 }), (steps) => {
        const city = newTown();
        steps.forEach(([{ command: each, frames }, toUndo], i) => {
          tryApply(city, { ...each, dryRun: false, opId: `step ${i}` });
          advance(city, frames);
          for (const earlier of toUndo) {
            const undoes = `step ${i - (earlier % (i + 1))}`;
            const before = fingerprint(city);
            const isRefused = tryApply(city, { type: "undo", undoes }) === "refused";
            if (isRefused) expect(fingerprint(city)).to.equal(before);
            expect(findFaults(city)).to.deep.equal([]);
          }
        });
        advance(city, 300);
        expect(findFaults(city)).to.deep.equal([]);
      }),
      { numRuns: propertyRuns(60) },
    );
  }).timeout(120_000);

  it("a dry run or a rejected command changes nothing", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const city = newTown();
        for (const { command: each, frames } of steps) {
          const before = fingerprint(city);
          const isDry = "dryRun" in each && each.dryRun;
          if (tryApply(city, each) === "refused" || isDry) expect(fingerprint(city)).to.equal(before);
          advance(city, frames);
        }
      }),
      { numRuns: propertyRuns(60) },
    );
  }).timeout(120_000);

  it("the same commands make the same city, with or without a save in between", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.nat(30), (steps, savedAfter) => {
        const once = newTown();
        let again = newTown();
        steps.forEach(({ command: each, frames }, i) => {
          for (const city of [once, again]) {
            tryApply(city, each);
            advance(city, frames);
          }
          if (i === savedAfter) again = reloaded(again);
        });
        for (const city of [once, again]) advance(city, 700);
        expect(fingerprint(again)).to.equal(fingerprint(once));
      }),
      { numRuns: propertyRuns(40) },
    );
  }).timeout(120_000);

  it("after any commands, everything in the city can be bulldozed", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        const city = newTown();
        for (const each of commands) tryApply(city, each);
        const removal = { dryRun: false, keepNodes: false };
        for (const { id: each } of city.buildings.all())
          bulldoze.act(city, { ...removal, entityType: "building", id: each });
        while (city.nodes.all().length > 0) {
          bulldoze.act(city, { ...removal, entityType: "netNode", id: city.nodes.all()[0]?.id as number });
        }
        expect([
          city.segments.all().length,
          city.blocks.all().length,
          city.buildings.all().length,
        ]).to.deep.equal([0, 0, 0]);
        expect(city.citizens.size).to.equal(0);
      }),
      { numRuns: propertyRuns(60) },
    );
  }).timeout(120_000);
});

function reloaded(city: World): World {
  return restoreSnapshot(JSON.parse(fingerprint(city)));
}
