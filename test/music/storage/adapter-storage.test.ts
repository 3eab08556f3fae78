import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { AdapterStorage, type StoredAdapter } from "../../../src/music/storage/adapter-storage.js";
import { FileStorage } from "../../../src/music/storage/file-storage.js";
import { ObjectStore } from "../../../src/music/storage/object-store.js";
import { failureOf } from "../../failures.js";
import { temporaryDirectory } from "../tasks.js";
import { BUCKET, type S3Server, startS3 } from "./s3-server.js";

const never = new AbortController().signal;

describe("adapters in a shared storage", () => {
  const environment = { ...process.env };
  const folder = temporaryDirectory();
  let server: S3Server;
  let store: ObjectStore;
  let machine: AdapterStorage;
  let other: AdapterStorage;

  before(async () => {
    server = await startS3();
    Object.assign(process.env, server.environment);
    store = await ObjectStore.open(`s3://${BUCKET}`);
    machine = new AdapterStorage(new FileStorage(temporaryDirectory(), store, "adapters/"));
    other = new AdapterStorage(new FileStorage(temporaryDirectory(), store, "adapters/"));
  });
  after(async () => {
    store.close();
    await server.close();
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
    Object.assign(process.env, environment);
  });

  /** Fetches an adapter on the other machine. Returns the contents of its files by name. */
  const filesOf = (adapter: StoredAdapter) =>
    other.withAdapter(adapter, async (path) =>
      Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name), "utf8")])),
    );
  const refusal = async (path: string) => (await failureOf(machine.publish(path))).message;

  it("adapters are the same on another machine, and are stored once if their content is equal", async () => {
    const make = (name: string, weights: string) => {
      const path = join(folder, name);
      mkdirSync(path);
      writeFileSync(join(path, "adapter_model.safetensors"), weights);
      writeFileSync(join(path, "adapter_config.json"), "{}");
      writeFileSync(join(path, "notes.txt"), "of no use to others");
      return machine.publish(path);
    };
    const first = await make("first", "weights");
    const copy = await make("copy", "weights");
    const changed = await make("changed", "other weights");
    const files = { "adapter_config.json": "{}", "adapter_model.safetensors": "weights" };
    expect(await filesOf(first)).to.deep.equal(files);
    expect(copy).to.deep.equal(first);
    expect(changed.digest).to.not.equal(first.digest);
    expect(await filesOf(changed)).to.deep.equal({ ...files, "adapter_model.safetensors": "other weights" });
  });

  it("adapters keep their file names and include their configuration", async () => {
    const path = join(folder, "first", "adapter_model.safetensors");
    const named = await machine.publish(path);
    expect(await other.withAdapter(named, async (path) => readFileSync(path, "utf8"))).to.equal("weights");
    expect(Object.keys(named.files)).to.have.members(["adapter_model.safetensors", "adapter_config.json"]);
  });

  it("adapters include the PyTorch file of PEFT, but no optimizer state", async () => {
    const path = join(folder, "pickled");
    mkdirSync(path);
    for (const name of ["adapter_config.json", "adapter_model.bin", "optimizer.bin"]) {
      writeFileSync(join(path, name), name);
    }
    expect(Object.keys(await filesOf(await machine.publish(path)))).to.have.members([
      "adapter_config.json",
      "adapter_model.bin",
    ]);
    const { entry } = await machine.publish(join(path, "adapter_model.bin"));
    expect(entry).to.equal("adapter_model.bin");
  });

  it("deletes files that nothing has used for a day, and keeps new ones, used ones and files of others", async () => {
    const shared = temporaryDirectory();
    const storage = new AdapterStorage(new FileStorage(shared, null, "adapters/"));
    const make = (weights: string) => {
      const path = join(temporaryDirectory(), "style.safetensors");
      writeFileSync(path, weights);
      return storage.publish(path);
    };
    const [unused, used, again] = [await make("unused"), await make("used"), await make("again")];
    writeFileSync(join(shared, "notes.txt"), "not an adapter");
    for (const name of readdirSync(shared)) utimesSync(join(shared, name), 1e9, 1e9);
    const fresh = await make("fresh");
    await make("again");
    const names = (adapter: StoredAdapter) => Object.values(adapter.files);
    await storage.removeUnused(async () => new Set(names(used)), never);
    const kept = [...names(used), ...names(again), ...names(fresh), "notes.txt"];
    expect(readdirSync(shared)).to.have.members(kept);
    expect(kept).to.not.include(names(unused)[0]);
  });

  it("lists stored files for their deletion from S3", async () => {
    const path = join(temporaryDirectory(), "style.safetensors");
    writeFileSync(path, "unused weights");
    const [name = ""] = Object.values((await machine.publish(path)).files);
    const { now } = Date;
    Date.now = () => now() + 3 * 24 * 3_600_000;
    try {
      await machine.removeUnused(async () => new Set([name]), never);
      expect(await store.head(`adapters/${name}`)).to.not.equal(null);
      await machine.removeUnused(async () => new Set(), never);
      expect(await store.head(`adapters/${name}`)).to.equal(null);
    } finally {
      Date.now = now;
    }
  });

  it("deletes unused files although the storage refuses to delete another one", async () => {
    const folder = temporaryDirectory();
    const files = new FileStorage(folder, null, "adapters/");
    const storage = new AdapterStorage(files);
    const path = join(temporaryDirectory(), "style.safetensors");
    for (const weights of ["first", "second", "third"]) {
      writeFileSync(path, weights);
      await storage.publish(path);
    }
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), 1e9, 1e9);
    const [refused = ""] = readdirSync(folder);
    const { remove } = files;
    files.remove = async (name) => {
      if (name === refused) throw new Error("403");
      await remove.call(files, name);
    };
    expect((await failureOf(storage.removeUnused(async () => new Set(), never))).message).to.equal("403");
    expect(readdirSync(folder)).to.deep.equal([refused]);
  });

  it("a path without an adapter is rejected", async () => {
    expect(await refusal(join(folder, "absent"))).to.include("there is no such file or folder");
    expect(await refusal(join(folder, "first", "notes.txt"))).to.include(
      "adapters are read from .safetensors",
    );
    mkdirSync(join(folder, "empty"));
    expect(await refusal(join(folder, "empty"))).to.include("no adapter found");
  });
});
