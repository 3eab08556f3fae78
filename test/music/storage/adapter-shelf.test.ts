import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { AdapterShelf, type StoredAdapter } from "../../../src/music/storage/adapter-shelf.js";
import { ObjectStore } from "../../../src/music/storage/object-store.js";
import { Shelf } from "../../../src/music/storage/shelf.js";
import { temporaryDirectory } from "../tasks.js";
import { BUCKET, type S3Server, startS3 } from "./s3-server.js";

describe("adapters in a store that machines share", () => {
  const environment = { ...process.env };
  const folder = temporaryDirectory();
  let server: S3Server;
  let store: ObjectStore;
  let machine: AdapterShelf;
  let other: AdapterShelf;

  before(async () => {
    server = await startS3();
    Object.assign(process.env, server.environment);
    store = await ObjectStore.open(`s3://${BUCKET}`);
    machine = new AdapterShelf(new Shelf(temporaryDirectory(), store, "adapters/"));
    other = new AdapterShelf(new Shelf(temporaryDirectory(), store, "adapters/"));
  });
  after(async () => {
    store.close();
    await server.close();
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
    Object.assign(process.env, environment);
  });

  /** What lies at the path that is lent, by name. */
  const lent = (adapter: StoredAdapter) =>
    other.lend(adapter, async (path) =>
      Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name), "utf8")])),
    );
  const refusal = (path: string) =>
    machine.publish(path).then(
      () => expect.fail("it was taken"),
      (error: Error) => error.message,
    );

  it("reach another one as they were, and are one where their content is", async () => {
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
    expect(await lent(first)).to.deep.equal(files);
    expect(copy).to.deep.equal(first);
    expect(changed.digest).to.not.equal(first.digest);
    expect(await lent(changed)).to.deep.equal({ ...files, "adapter_model.safetensors": "other weights" });
  });

  it("are named as they were, with the configuration beside them", async () => {
    const path = join(folder, "first", "adapter_model.safetensors");
    const named = await machine.publish(path);
    expect(await other.lend(named, async (path) => readFileSync(path, "utf8"))).to.equal("weights");
    expect(Object.keys(named.files)).to.have.members(["adapter_model.safetensors", "adapter_config.json"]);
  });

  it("are refused where there are none", async () => {
    expect(await refusal(join(folder, "absent"))).to.include("there is no such file or folder");
    expect(await refusal(join(folder, "first", "notes.txt"))).to.include(
      "adapters are read from .safetensors",
    );
    mkdirSync(join(folder, "empty"));
    expect(await refusal(join(folder, "empty"))).to.include("there is no adapter here");
  });
});
