import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { packCity, SaveFileError } from "../../../src/city/simulation/saves/crp.js";
import { SNAPSHOT_VERSION } from "../../../src/city/simulation/saves/snapshot.js";
import { Random } from "../../../src/city/simulation/state/random.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { propertyRuns } from "../../property-runs.js";
import { advance, fingerprint, loadWorld, newCity, smallTown } from "./towns.js";

// biome-ignore lint/suspicious/noExplicitAny: the content of a save
type Content = any;

/** Saves with a right checksum and wrong content. */
describe("saves with one wrong value", () => {
  const values = [1e9, 4e4, 2, 0, -1, -1e9, 0.5, 1e300, "1e999", null, "seven", [], {}, true];
  const doubles = [1e9, 4e4, 2, 0, -1, 0.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY];
  let directory: string;
  let town: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "carillon-damaged-"));
    const city = newCity();
    smallTown(city);
    advance(city, 9_137);
    town = fingerprint(city);
  });
  after(() => rm(directory, { recursive: true }));

  async function load(content: string): Promise<World> {
    const path = join(directory, "Wrong.crp");
    // JSON.stringify cannot write a number that is too large for a double.
    await writeFile(
      path,
      await packCity(Buffer.from(content.replaceAll('"1e999"', "1e999")), SNAPSHOT_VERSION),
    );
    return await loadWorld(path);
  }

  async function refusalOf(damage: (content: Content) => unknown): Promise<string> {
    const content = JSON.parse(town);
    damage(content);
    const error = await load(JSON.stringify(content)).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).to.be.instanceOf(SaveFileError);
    return (error as Error).message;
  }

  it("names the value at fault", async () => {
    for (const [damage, words] of [
      [(c) => (c.nodes[3].id = 1e9), /Wrong\.crp: .*nodes\[3\]\.id/],
      [(c) => (c.nodes[3].id = c.nodes[4].id), /taken/],
      [(c) => (c.nodes[3].at[0] = 1e9), /nodes\[3\]\.at\[0\]/],
      [(c) => (c.segments[3].ends[0] = 30_000), /segment \d+ ends at node 30000, which does not exist/],
      [(c) => (c.segments[3].blocks = [1e9]), /segments\[3\]\.blocks\[0\]/],
      [(c) => (c.blocks[0].cells = "01"), /block \d+ has 2 cells/],
      [(c) => (c.buildings[0].workers = [1, 1]), /building 1 lists a worker twice/],
      [(c) => (c.households[0][3] = [1e9]), /households\[0\]\[3\]\[0\]/],
      [(c) => (c.frame = 1e300), /frame/],
      [(c) => (c.seed = -1), /seed/],
      [(c) => (c.taxRates[3] = 30), /taxRates/],
      [(c) => (c.random = [1]), /random/],
      [(c) => (c.citizens = withNumber(c.citizens, 0, 1e9)), /id is wrong: 1000000000/],
      [(c) => (c.citizens = withNumber(c.citizens, 0, Number.NaN)), /id is wrong: NaN/],
      [(c) => (c.buildingNumbers = c.buildingNumbers.slice(0, 896)), /buildingNumbers has too few records/],
      [(c) => (c.traffic = "!"), /traffic are damaged/],
      [(c) => delete c.citizens, /citizens are missing/],
      [(c) => delete c.nodes, /nodes is missing/],
    ] as [damage: (content: Content) => unknown, words: RegExp][]) {
      expect(await refusalOf(damage)).to.match(words);
    }
  });

  it("are refused, or make a city that runs", async () => {
    const damaged = fc.tuple(fc.nat(), fc.constantFrom(...values), fc.constantFrom(...doubles));
    await fc.assert(
      fc.asyncProperty(damaged, async ([choice, value, double]) => {
        const content = JSON.parse(town);
        damageOne(content, choice, value, double);
        const city = await load(JSON.stringify(content)).catch((error: unknown) => {
          expect(error).to.be.instanceOf(SaveFileError);
        });
        if (city) advance(city, 600);
      }),
      { numRuns: propertyRuns(150) },
    );
  });

  it("are refused when their content needs too much memory", async () => {
    const error = await load(`{"nodes":[${"{},".repeat(11_000_000)}{}]}`).catch((reason: Error) => reason);
    expect((error as Error).message).to.match(/too many values/);
  });
});

/** Replaces one value at a random place. */
function damageOne(content: Content, choice: number, value: unknown, double: number): void {
  const random = Random.fromSeed(choice);
  let object: Content = content;
  for (;;) {
    const keys = Object.keys(object);
    const key = keys[random.below(keys.length)];
    if (key === undefined) return;
    const part = object[key];
    if (typeof part === "string" && PACKED.includes(key))
      object[key] = withNumber(part, random.below(part.length / 11), double);
    else if (typeof part === "object" && part !== null && random.percent(90)) {
      object = part;
      continue;
    } else object[key] = value;
    return;
  }
}

const PACKED = ["traffic", "buildingNumbers", "citizens"];

/** Packed numbers with another number at an index. */
function withNumber(packed: string, index: number, value: number): string {
  const bytes = Buffer.from(packed, "base64");
  bytes.writeDoubleLE(value, 8 * Math.min(index, bytes.length / 8 - 1));
  return bytes.toString("base64");
}
