import { fork } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import fc from "fast-check";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { setSimulationSpeed } from "../../../src/city/commands/city.js";
import { RefusedError } from "../../../src/city/refusal.js";
import { EmbeddedGame } from "../../../src/city/simulation/embedded-game.js";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import { trafficOf } from "../../../src/city/simulation/life/traffic.js";
import { SaveFileError } from "../../../src/city/simulation/saves/crp.js";
import { fileNameFor, SaveFiles } from "../../../src/city/simulation/saves/save-files.js";
import { START_MONEY } from "../../../src/city/simulation/state/economy.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { advance, findFaults, fingerprint, loadWorld, newCity, smallTown } from "./towns.js";

describe("saves of the embedded city", () => {
  let directory: string;
  let saves: SaveFiles;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "carillon-saves-"));
    saves = new SaveFiles(directory, (error) => {
      throw error;
    });
  });

  afterEach(() => rm(directory, { recursive: true }));

  async function savedTown(frames: number) {
    const city = newCity();
    smallTown(city);
    advance(city, frames);
    const { path } = saves.begin(city, "town");
    await saves.settled();
    return { city, path };
  }

  it("a save restores exactly the same city, which then develops the same", async () => {
    const { city, path } = await savedTown(9_137);
    const restored = await loadWorld(path);
    expect(restored.citizens.size).to.be.greaterThan(20);
    expect(fingerprint(restored)).to.equal(fingerprint(city));
    advance(city, 1000);
    advance(restored, 1000);
    expect(fingerprint(restored)).to.equal(fingerprint(city));
    for (const each of [city, restored]) {
      bulldoze.act(each, { dryRun: false, entityType: "building", id: 3, keepNodes: false });
      advance(each, 13_000);
    }
    expect(fingerprint(restored)).to.equal(fingerprint(city));
  });

  it("restored records have the same field order as new records, so that V8 shares their hidden classes", async () => {
    const { city, path } = await savedTown(9_137);
    const restored = await loadWorld(path);
    for (const kind of ["nodes", "segments", "blocks", "buildings", "households", "citizens"] as const) {
      const [old] = restored[kind].all();
      const [young] = city[kind].all();
      expect(Object.keys(old as object), kind).to.deep.equal(Object.keys(young as object));
    }
  });

  it("a save contains the city's state when the save began", async () => {
    const city = newCity();
    smallTown(city);
    advance(city, 5000);
    const before = fingerprint(city);
    const { path } = saves.begin(city, "then");
    advance(city, 3000);
    await saves.settled();
    expect(fingerprint(await loadWorld(path))).to.equal(before);
  });

  it("a save does not contain changes by commands that run during the save", async () => {
    const city = newCity();
    smallTown(city);
    advance(city, 5000);
    const before = fingerprint(city);
    const { path } = saves.begin(city, "then");
    expect(city.capture).to.not.equal(null);
    const removal = { dryRun: false, entityType: "building", keepNodes: false };
    for (const { id } of city.buildings.all()) bulldoze.act(city, { ...removal, id });
    expect(city.buildings.all()).to.deep.equal([]);
    await city.capture?.done;
    expect(city.capture).to.equal(null);
    await saves.settled();
    expect(fingerprint(await loadWorld(path))).to.equal(before);
  });

  it("complete saves are listed with name, path and size, newest first", async () => {
    expect(await new SaveFiles(join(directory, "missing"), () => {}).list()).to.deep.equal([]);
    const city = newCity("empty");
    for (const name of ["first", "second"]) {
      const began = saves.begin(city, name);
      expect((await saves.list()).map((save) => save.name)).to.not.include(name);
      await saves.settled();
      const [newest] = await saves.list();
      expect(newest).to.include({ name, path: began.path });
      expect(newest?.lengthBytes).to.equal((await readFile(began.path)).length);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  it("a save is rejected while another is being written", async () => {
    const city = newCity("empty");
    saves.begin(city, "one");
    expect(() => saves.begin(city, "two")).to.throw(RefusedError, /still being written/);
    await saves.settled();
    saves.begin(city, "two");
    await saves.settled();
    expect(await saves.list()).to.have.length(2);
  });

  it("saves have safe file names", () => {
    expect(fileNameFor("a/b:c..")).to.equal("a_b_c__");
    expect(fileNameFor("  ")).to.equal("AgentAutoSave");
    expect(fileNameFor("../../etc/passwd")).to.equal("______etc_passwd");
    expect(fileNameFor("Zürich 2-α_1")).to.equal("Zürich 2-α_1");
    expect(fileNameFor("x".repeat(100))).to.have.length(64);
  });

  it("invalid or reserved save names are rejected", async () => {
    const world = newCity("empty");
    expect(() => saves.begin(world, "\u{20000}".repeat(64))).to.throw(
      RefusedError,
      /has 256 bytes; a file name has room for 246/,
    );
    const longest = `${"\u{20000}".repeat(61)}ab`;
    saves.begin(world, longest);
    await saves.settled();
    await saves.autosave(world);
    const [automatic] = await saves.list();
    expect(() => saves.begin(world, automatic?.name.toUpperCase() as string)).to.throw(
      RefusedError,
      /automatic saves/,
    );
    saves.begin(world, "AutoSave");
    await saves.settled();
    const names = (await saves.list()).map(({ name }) => name);
    expect(names).to.deep.equal(["AutoSave", automatic?.name, longest]);
  });

  it("saves of the first version still load and run", async () => {
    const saved = join(import.meta.dirname, "saved/version-1.crp");
    const city = await loadWorld(saved);
    expect([city.citizens.size, city.buildings.all().length]).to.deep.equal([69, 25]);
    expect(budgetOf(city).balance).to.equal(START_MONEY);
    advance(city, 2 * 4096);
    expect(city.citizens.size).to.be.greaterThan(40);
    expect(city.statistics.samples).to.have.length(2);
  });

  it("loads saves of version 2, which had no traffic, and simulates traffic", async () => {
    const city = await loadWorld(join(import.meta.dirname, "saved/version-2.crp"));
    expect([city.citizens.size, city.buildings.all().length]).to.deep.equal([54, 22]);
    expect(budgetOf(city).balance).to.equal(151_424.41);
    advance(city, 2 * 4096);
    const driven = city.segments
      .all()
      .filter(({ id }) => (trafficOf(city.segments.at(id))?.volumePerHour ?? 0) > 1);
    expect(driven.length).to.be.greaterThan(3);
  });

  it("loads and runs saves of version 3, which had no waiting times at services", async () => {
    const city = await loadWorld(join(import.meta.dirname, "saved/version-3.crp"));
    expect([city.citizens.size, city.buildings.all().length]).to.deep.equal([124, 14]);
    expect(city.buildings.all().map(({ waitSeconds }) => waitSeconds)).to.deep.equal(Array(14).fill(0));
    advance(city, 2 * 4096);
    expect(city.citizens.size).to.be.greaterThan(60);
  });

  it("loads cities whose lots share cells, as older versions made beside narrowed roads", async () => {
    const { city } = await savedTown(9_137);
    const [first, second] = city.buildings.all().filter(({ blockId }) => blockId !== 0);
    if (!first || !second) throw new Error("the town has too few growables");
    Object.assign(second, { blockId: first.blockId, lotMask: first.lotMask | second.lotMask });
    const { path } = saves.begin(city, "shared");
    await saves.settled();
    const restored = await loadWorld(path);
    expect(findFaults(restored)).to.deep.equal([]);
    expect(restored.buildings.at(first.id).lotMask).to.equal(first.lotMask);
  });

  it("loads saves without a city id, and gives such a city an id", async () => {
    const city = newCity();
    expect(fingerprint(city)).to.not.include("cityId");
    const { path } = saves.begin(city, "old");
    await saves.settled();
    const before = await readFile(path);
    const first = await saves.load(path);
    const second = await saves.load(path);
    for (const world of [first, second]) {
      await saves.autosave(world);
      expect(fingerprint(await loadWorld(path))).to.equal(fingerprint(city));
    }
    expect((await saves.list()).map(({ name }) => name)).to.have.members([
      "old",
      `AutoSave ${first.cityId} 1`,
      `AutoSave ${second.cityId} 1`,
    ]);
    expect(await readFile(path)).to.deep.equal(before);
    first.cityId = "../../elsewhere";
    saves.begin(first, "foreign");
    await saves.settled();
    const error = await saves.load(join(directory, "foreign.crp")).catch((reason: Error) => reason);
    expect(error).to.be.instanceOf(SaveFileError);
  });

  it("the save written last is the newest save, even if the system clock was changed", async () => {
    const world = newCity("empty");
    const { path } = saves.begin(world, "ahead");
    await saves.settled();
    const inAYear = new Date(Date.now() + 365 * 24 * 3600 * 1000);
    await utimes(path, inAYear, inAYear);
    for (const name of ["one", "two", "three"]) {
      saves.begin(world, name);
      await saves.settled();
      expect((await saves.list())[0]?.name).to.equal(name);
    }
  });

  it("a failed save leaves no partial file", async () => {
    const failures: Error[] = [];
    const blocked = new SaveFiles(directory, (error) => failures.push(error));
    await mkdir(join(directory, "town.crp"));
    blocked.begin(newCity("empty"), "town");
    await blocked.settled();
    expect(failures).to.have.length(1);
    expect(await readdir(directory)).to.deep.equal(["town.crp"]);
  });

  it("truncated, changed or foreign saves are rejected with the reason", async () => {
    const { path } = await savedTown(600);
    const whole = await readFile(path);
    const refusalOf = async (bytes: Buffer) => {
      await writeFile(path, bytes);
      const error = await loadWorld(path).then(
        () => null,
        (reason: Error) => reason,
      );
      expect(error).to.be.instanceOf(SaveFileError);
      return (error as Error).message;
    };
    for (const share of [0, 0.001, 0.01, 0.5, 0.999]) {
      expect(await refusalOf(whole.subarray(0, Math.floor(whole.length * share)))).to.match(/truncated/);
    }
    expect(await refusalOf(Buffer.concat([whole, Buffer.from("x")]))).to.match(/too long/);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 100] = (flipped[whole.length - 100] as number) ^ 1;
    expect(await refusalOf(flipped)).to.match(/checksum/);
    expect(await refusalOf(Buffer.from("PNG and some more bytes"))).to.match(/not a \.crp package/);
    const foreign = Buffer.from(whole);
    foreign.write("another-thing", foreign.indexOf("carillon-city"));
    expect(await refusalOf(foreign)).to.match(/package of the game/);
    await writeFile(path, whole);
    expect((await loadWorld(path)).frame).to.equal(600);
  });

  it("a save survives a kill while being overwritten @slow", async () => {
    const { city, path } = await savedTown(3000);
    const saver = fileURLToPath(new URL("./endless-saver.ts", import.meta.url));
    for (let delayMs = 5; delayMs < 60; delayMs += 12) {
      const child = fork(saver, [path, directory], { execArgv: ["--import", "tsx"] });
      await new Promise((resolve) => child.once("message", resolve));
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("exit", resolve));
      expect(fingerprint(await loadWorld(path))).to.equal(fingerprint(city));
      expect((await saves.list()).map(({ name }) => name)).to.deep.equal(["town"]);
    }
    expect((await readdir(directory)).length).to.be.at.most(2);
  });

  it("a failed save is reported", async () => {
    const file = join(directory, "a file");
    await writeFile(file, "");
    const failures: string[] = [];
    const blocked = new SaveFiles(join(file, "saves"), ({ message }) => failures.push(message));
    blocked.begin(newCity("empty"), "town");
    await blocked.settled();
    expect(failures).to.have.length(1);
    expect(failures[0]).to.match(/Saving the city to .*town\.crp failed/);
  });
});

describe("automatic saves over a long life", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant({ kind: "autosave" } as const) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("save" as const), name: fc.constantFrom("A", "B") }),
    },
    { weight: 2, arbitrary: fc.constant({ kind: "restart" } as const) },
    { weight: 1, arbitrary: fc.constant({ kind: "damage" } as const) },
    { weight: 1, arbitrary: fc.constant({ kind: "new" } as const) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("load" as const), choice: fc.nat() }) },
  );

  it("each city keeps its five newest automatic saves, and the newest intact save is resumed", async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), liveThrough), {
      numRuns: 12,
    });
  });

  async function liveThrough(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) {
    const directory = await mkdtemp(join(tmpdir(), "carillon-life-"));
    const onFailed = (error: Error) => {
      throw error;
    };
    let saves = new SaveFiles(directory, onFailed);
    let city = newCity("empty");
    /** Valid saves, oldest first. */
    let whole: { path: string; state: string }[] = [];
    const damaged = new Set<string>();
    const begin = async () => {
      city = newCity("empty", whole.length + 1);
      await saves.autosave(city);
    };
    const resume = async () => {
      saves = new SaveFiles(directory, onFailed);
      const refused: string[] = [];
      const newest = await saves.loadNewest(({ message }) => refused.push(message));
      expect(newest && stateOf(newest.world)).to.equal(whole.at(-1)?.state ?? null);
      expect(newest?.path).to.equal(whole.at(-1)?.path);
      if (newest) city = newest.world;
      else await begin();
    };
    for (const next of [{ kind: "new" } as const, ...steps]) {
      const before = await contents(directory);
      if (next.kind === "restart") await resume();
      else if (next.kind === "new") await begin();
      else if (next.kind === "load") {
        const save = whole[next.choice % Math.max(1, whole.length)];
        if (save) city = await saves.load(save.path);
      } else if (next.kind === "damage") {
        const newest = whole.pop();
        if (newest) {
          await truncate(newest.path, 500);
          before.set(newest.path, await stamp(newest.path));
          if (/AutoSave/.test(newest.path)) damaged.add(newest.path);
          await resume();
        }
      } else {
        advance(city, 1);
        if (next.kind === "autosave") await saves.autosave(city);
        else saves.begin(city, next.name);
        await saves.settled();
      }
      const after = await contents(directory);
      const changed = [...after].filter(([path, own]) => before.get(path) !== own).map(([path]) => path);
      expect(changed).to.have.length.at.most(1);
      for (const path of before.keys()) expect(after.has(path)).to.equal(true);
      for (const path of changed) {
        expect(damaged.has(path)).to.equal(false);
        if (next.kind !== "save") expect(path).to.include(`AutoSave ${city.cityId} `);
        const own = whole.filter((save) => save.path.includes(`AutoSave ${city.cityId} `));
        if (before.has(path) && next.kind !== "save")
          expect([path, own.length]).to.deep.equal([own[0]?.path, 5]);
        whole = whole.filter((save) => save.path !== path);
        whole.push({ path, state: stateOf(city) });
      }
      if (next.kind === "autosave" || next.kind === "save") expect(changed).to.have.length(1);
    }
    await rm(directory, { recursive: true });
  }

  async function contents(directory: string): Promise<Map<string, string>> {
    const names = await readdir(directory);
    const paths = names.map((name) => join(directory, name));
    return new Map(await Promise.all(paths.map(async (path) => [path, await stamp(path)] as const)));
  }

  /** Returns a value that changes with every write of the file, even if the new bytes are the same. */
  async function stamp(path: string): Promise<string> {
    const { ino, mtimeNs } = await stat(path, { bigint: true });
    return `${ino} ${mtimeNs}`;
  }

  /** State without the city id: loading an older save gives the city a new id. */
  function stateOf(city: World): string {
    return fingerprint(city).replace(/^\{"cityId":"\w+",/, "{");
  }
});

describe("the embedded game", () => {
  it("runs a city in real time, pauses, saves, unloads and loads", async () => {
    const savesDirectory = await mkdtemp(join(tmpdir(), "carillon-game-"));
    const onSaveFailed = (error: Error) => {
      throw error;
    };
    const game = new EmbeddedGame({ savesDirectory, onSaveFailed });
    const seen: boolean[] = [];
    game.onCityChanged(() => void seen.push(game.world !== null));
    const city = game.startCity({ seed: 3, map: "highway", paused: false });
    const started = city.clock.gameTimeMs;
    while (city.clock.gameTimeMs === started) await new Promise((resolve) => setTimeout(resolve, 10));
    setSimulationSpeed.act(city, { paused: true, speed: 9 });
    expect(city.clock).to.include({ paused: true, selectedSpeed: 3, finalSpeed: 0 });
    const paused = fingerprint(city);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(fingerprint(city)).to.equal(paused);
    setSimulationSpeed.act(city, { paused: false, speed: 3 });
    const running = fingerprint(city);
    const { path } = game.saves.begin(city, "");
    await city.capture?.done;
    expect(fingerprint(city)).to.equal(running);
    await game.saves.settled();
    game.unloadCity();
    expect(game.world).to.equal(null);
    expect(fingerprint(await game.loadCity(path))).to.equal(running);
    expect((await game.saves.list()).map(({ name }) => name)).to.deep.equal(["AgentAutoSave"]);
    await writeFile(path, "broken");
    const refused = await game.loadCity(path).catch((error: Error) => error);
    expect(refused).to.be.instanceOf(SaveFileError);
    expect(game.world).to.not.equal(null);
    expect(seen).to.deep.equal([true, false, true]);
    await game.close();
    await rm(savesDirectory, { recursive: true });
  });
});
