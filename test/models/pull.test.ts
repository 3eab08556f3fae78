import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { createEngine, loadConfig } from "../../src/index.js";
import { PullError, type PullErrorCode } from "../../src/models/errors.js";
import { Hub } from "../../src/models/hub.js";
import { type PullProgress, pullModel } from "../../src/models/pull.js";
import { findModelByName } from "../../src/music/models/models.js";
import { failureOf } from "../failures.js";
import { freePort, listenLocally } from "../local-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { FakeHub } from "./hub-server.js";
import { languageModelRepository, mainRepository } from "./repositories.js";

const MAIN = "ACE-Step/Ace-Step1.5";
const WEIGHTS = "model.safetensors";
const CUT_BYTES = 300_000;

describe("download of models from a hub", () => {
  let server: FakeHub;
  let directory: string;

  before(async () => {
    server = await FakeHub.start();
  });

  beforeEach(() => {
    server.reset();
    directory = temporaryDirectory();
  });

  interface Access {
    url?: string;
    token?: string;
    signal?: AbortSignal;
    onProgress?: (progress: PullProgress) => void;
  }

  function pull(name: string, { url, token, signal, onProgress }: Access = {}): Promise<string[]> {
    const options = { url: url ?? server.url, token: token ?? null };
    const hub = new Hub({ ...options, signal: signal ?? new AbortController().signal });
    return pullModel(name, directory, hub, onProgress ?? (() => {}));
  }

  async function refusal(pulling: Promise<unknown>, code: PullErrorCode): Promise<string> {
    const error = await failureOf(pulling);
    expect(error).to.be.instanceOf(PullError);
    expect(error).to.include({ code });
    return (error as PullError).message;
  }

  const unusedUrl = async () => `http://127.0.0.1:${await freePort()}`;

  /** Serves a repository with one self-contained model; returns its weights. */
  function serveModel(weights = randomBytes(1_000_000)): Buffer {
    server.repositories["someone/small"] = { "config.json": Buffer.from("{}"), [WEIGHTS]: weights };
    return weights;
  }

  const inModel = (name: string) => join(directory, "someone--small", name);
  const incomplete = (name: string) => join(directory, ".incomplete", "someone--small", name);
  const visible = () => readdirSync(directory).filter((name) => !name.startsWith("."));

  it("downloads a model and its parts, and the engine loads it by name", async () => {
    server.repositories[MAIN] = mainRepository();
    server.repositories["ACE-Step/acestep-5Hz-lm-0.6B"] = languageModelRepository();
    const parts = ["vae", "Qwen3-Embedding-0.6B", "acestep-v15-turbo"];
    expect(await pull("acestep-v15-turbo")).to.deep.equal(parts);
    expect(await pull("acestep-5Hz-lm-0.6B")).to.deep.equal(["acestep-5Hz-lm-0.6B"]);
    expect(visible()).to.have.members([...parts, "acestep-5Hz-lm-0.6B"]);

    const engine = createEngine(loadConfig({ SVC_CHECKPOINTS: directory, SVC_DEVICE: "cpu" }));
    try {
      expect(engine.catalog.models().map(({ name }) => name)).to.include("acestep-v15-turbo");
      expect(engine.catalog.languageModels().map(({ name }) => name)).to.include("acestep-5Hz-lm-0.6B");
      await engine.loader.loadSlot(1, null);
      expect(engine.catalog.slots()[0]).to.include({ model: "acestep-v15-turbo" });
    } finally {
      await engine.close();
    }
  });

  it("downloads parts that a repository lacks from the main repository, once for all models", async () => {
    server.repositories[MAIN] = mainRepository();
    for (const name of ["acestep-v15-base", "acestep-v15-sft"]) {
      server.repositories[`ACE-Step/${name}`] = {
        "config.json": Buffer.from("{}"),
        "silence_latent.pt": Buffer.from("silence"),
        [WEIGHTS]: Buffer.from(name),
      };
    }
    expect(await pull("acestep-v15-base")).to.deep.equal(["vae", "Qwen3-Embedding-0.6B", "acestep-v15-base"]);
    expect(await pull("acestep-v15-sft")).to.deep.equal(["acestep-v15-sft"]);
    rmSync(join(directory, "vae"), { recursive: true });
    expect(await pull("acestep-v15-sft")).to.deep.equal(["vae"]);
  });

  it("downloads every model of a repository", async () => {
    server.repositories["someone/mirror"] = mainRepository();
    const folders = ["Qwen3-Embedding-0.6B", "acestep-5Hz-lm-1.7B", "acestep-v15-turbo", "vae"];
    expect(await pull("someone/mirror")).to.have.members(folders.map((name) => `someone--mirror/${name}`));
    expect(visible()).to.deep.equal(["someone--mirror"]);
    expect(await pull("someone/mirror")).to.deep.equal([]);
  });

  it("a third-party model is never found under the name of a published model", async () => {
    server.repositories["someone/acestep-v15-turbo"] = {
      "config.json": Buffer.from("{}"),
      [WEIGHTS]: Buffer.from("w"),
    };
    server.repositories["someone/shadow"] = mainRepository();
    await pull("someone/acestep-v15-turbo");
    await pull("someone/shadow");
    const checkpoints = new Checkpoints(directory);
    expect(checkpoints.usesEmbedded("acestep-v15-turbo")).to.equal(true);
    expect(() => checkpoints.renderer("acestep-v15-turbo")).to.throw("was not found");
    const shadow = "someone--shadow/acestep-v15-turbo";
    expect(checkpoints.rendererNames()).to.include(shadow);
    expect(checkpoints.renderer(shadow).vae.path).to.equal(join(directory, "someone--shadow/vae"));
    expect(findModelByName([shadow], "acestep-v15-turbo")).to.equal(undefined);
    expect(findModelByName([shadow], shadow)).to.equal(shadow);
  });

  it("stops reading a file that is longer than its listed size", async () => {
    serveModel();
    server.surplus[WEIGHTS] = 20_000_000;
    const reports: PullProgress[] = [];
    const message = await refusal(
      pull("someone/small", { onProgress: (progress) => reports.push(progress) }),
      "CHECKSUM",
    );
    expect(message).to.include("more than the 1000000 bytes that are listed");
    expect(reports.at(-1)?.doneBytes).to.be.at.most(1_000_000 + "{}".length);
    expect(existsSync(inModel(WEIGHTS))).to.equal(false);
  });

  it("follows redirects only to hosts of Hugging Face", async () => {
    serveModel();
    server.storageHost = "http://files.example.org";
    expect(await refusal(pull("someone/small"), "HUB")).to.include("redirects to http://files.example.org");
    server.storageHost = null;
    server.repositories["someone/small"] = Object.fromEntries(
      Array.from({ length: 9 }, (_, index) => [`${index}.json`, Buffer.from("{}")]),
    );
    server.nextPage = "http://pages.example.org/";
    expect(await refusal(pull("someone/small"), "HUB")).to.include("redirects to http://pages.example.org");
  });

  it("keeps the folder structure of a repository in the diffusers layout", async () => {
    server.repositories["someone/pipeline"] = {
      "model_index.json": Buffer.from("{}"),
      "transformer/config.json": Buffer.from("{}"),
      "vae/config.json": Buffer.from("{}"),
    };
    expect(await pull("someone/pipeline")).to.deep.equal(["someone--pipeline"]);
    expect(existsSync(join(directory, "someone--pipeline", "transformer", "config.json"))).to.equal(true);
  });

  it("does not contact Hugging Face for an installed model", async () => {
    mkdirSync(join(directory, "acestep-5Hz-lm-0.6B"));
    expect(await pull("acestep-5Hz-lm-0.6B", { url: await unusedUrl() })).to.deep.equal([]);
  });

  it("a download can be cancelled just before a file starts", async () => {
    serveModel();
    const cancelling = new AbortController();
    const options = { signal: cancelling.signal, onProgress: () => cancelling.abort() };
    const failure = await pull("someone/small", options).catch((error: unknown) => error);
    expect(failure).to.have.property("name", "AbortError");
    expect(visible()).to.deep.equal([]);
  });

  it("a download reports its progress", async () => {
    const weights = serveModel();
    const reports: PullProgress[] = [];
    await pull("someone/small", { onProgress: (progress) => reports.push(progress) });
    const totalBytes = weights.length + 2;
    expect(reports[0]).to.include({ doneBytes: 0, totalBytes, file: join("someone--small", "config.json") });
    expect(reports.at(-1)).to.include({ doneBytes: totalBytes, totalBytes, fileBytes: weights.length });
  });

  for (const hasChunkStore of [true, false]) {
    it(`requests only the rest after a lost connection, ${hasChunkStore ? "with" : "without"} a chunk store`, async () => {
      const weights = serveModel();
      server.hasChunkStore = hasChunkStore;
      server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES };
      const message = await refusal(pull("someone/small"), "CONNECTION_LOST");
      expect(message).to.include(WEIGHTS).and.include("to resume");
      expect(visible()).to.deep.equal([]);
      const fromByte = statSync(incomplete(WEIGHTS)).size;
      expect(fromByte).to.be.within(1, CUT_BYTES);

      delete server.cuts[WEIGHTS];
      server.downloads.length = 0;
      await pull("someone/small");
      expect(server.downloads).to.deep.equal([{ path: WEIGHTS, fromByte }]);
      expect(readFileSync(inModel(WEIGHTS)).equals(weights)).to.equal(true);
    });
  }

  it("resumes an interrupted download", async () => {
    const weights = serveModel();
    server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES, hangs: true };
    const interrupted = new AbortController();
    const onProgress = ({ doneBytes }: PullProgress) => {
      if (doneBytes >= CUT_BYTES) interrupted.abort(new Error("interrupted"));
    };
    const error = await pull("someone/small", { signal: interrupted.signal, onProgress }).catch((e) => e);
    expect(error).to.have.property("message", "interrupted");
    expect(visible()).to.deep.equal([]);

    delete server.cuts[WEIGHTS];
    server.downloads.length = 0;
    await pull("someone/small");
    expect(server.downloads).to.have.length(1);
    expect(server.downloads[0]?.fromByte).to.be.greaterThan(0);
    expect(readFileSync(inModel(WEIGHTS)).equals(weights)).to.equal(true);
  });

  for (const file of [WEIGHTS, "config.json"]) {
    it(`rejects a corrupted ${file}, and downloads it again`, async () => {
      serveModel();
      server.corrupted.add(file);
      const message = await refusal(pull("someone/small"), "CHECKSUM");
      expect(message).to.include(file).and.include("It was removed");
      expect(visible()).to.deep.equal([]);

      server.corrupted.clear();
      server.downloads.length = 0;
      await pull("someone/small");
      expect(server.downloads[0]).to.deep.equal({ path: file, fromByte: null });
      expect(existsSync(inModel(file))).to.equal(true);
    });
  }

  it("removes files that a changed repository no longer lists", async () => {
    serveModel();
    server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES };
    await refusal(pull("someone/small"), "CONNECTION_LOST");
    const shards = { "model-1.safetensors": Buffer.from("a"), "model-2.safetensors": Buffer.from("b") };
    server.repositories["someone/small"] = { "config.json": Buffer.from("{}"), ...shards };
    await pull("someone/small");
    expect(readdirSync(join(directory, "someone--small"))).to.have.members([
      "config.json",
      ...Object.keys(shards),
    ]);
  });

  it("lists the known models for an unknown name", async () => {
    const message = await refusal(pull("acestep-v15-turob"), "UNKNOWN_MODEL");
    expect(message).to.include("acestep-v15-turob").and.include("acestep-v15-turbo, ").and.include("owner/");
    for (const name of ["../escape", "someone/..", "a/b/c", ""]) {
      await refusal(pull(name), "UNKNOWN_MODEL");
    }
  });

  it("reports a missing repository or file", async () => {
    const message = await refusal(pull("someone/absent", { token: server.token }), "NOT_FOUND");
    expect(message).to.include("someone/absent").and.include("acestep-v15-turbo");
    server.repositories[MAIN] = { "README.md": Buffer.from("") };
    expect(await refusal(pull("acestep-v15-turbo"), "NOT_FOUND")).to.include(`${MAIN}/acestep-v15-turbo`);
    expect(await refusal(pull(MAIN), "NOT_A_MODEL")).to.include(MAIN);
  });

  it("downloads a private repository with a valid token, and asks for HF_TOKEN without one", async () => {
    serveModel();
    server.private.add("someone/small");
    const message = await refusal(pull("someone/small"), "UNAUTHORIZED");
    expect(message).to.include("HF_TOKEN").and.include("status 401");
    expect(await refusal(pull("someone/small", { token: "hf_other" }), "UNAUTHORIZED")).to.include(
      "HF_TOKEN",
    );
    expect(await pull("someone/small", { token: server.token })).to.deep.equal(["someone--small"]);
    const refused = () => pull("someone/small", { token: "secret" });
    expect(refused).to.throw(PullError, "those begin with hf_").and.not.include({ message: "secret" });
  });

  it("reports an HF_ENDPOINT that is unreachable, answers 503, or is no model hub", async () => {
    const url = await unusedUrl();
    const unreachable = await refusal(pull(MAIN, { url }), "UNREACHABLE");
    expect(unreachable).to.include(url).and.include("ECONNREFUSED").and.include("HF_ENDPOINT");
    server.brokenStatus = 503;
    expect(await refusal(pull(MAIN), "HUB"))
      .to.include("status 503")
      .and.include("Try again later");
    server.brokenStatus = 200;
    expect(await refusal(pull(MAIN), "HUB")).to.include("does not respond like Hugging Face");
  });

  it("reports a hub that does not answer, and resumes a download that stalled @slow", async () => {
    const silent = createServer(() => {});
    const { url } = await listenLocally(silent);
    const weights = serveModel();
    server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES, hangs: true };
    const [unanswered, stalled] = await Promise.all([
      refusal(
        new Hub({ url, token: null, signal: new AbortController().signal }).list("someone/small", ""),
        "UNREACHABLE",
      ),
      refusal(pull("someone/small"), "CONNECTION_LOST"),
    ]);
    expect(unanswered).to.include(`${url} did not answer within 60 seconds`).and.include("HF_ENDPOINT");
    expect(stalled).to.include("less than 64 KiB arrived in 60 seconds").and.include("resume");
    delete server.cuts[WEIGHTS];
    await pull("someone/small");
    expect(statSync(inModel(WEIGHTS)).size).to.equal(weights.length);
    silent.closeAllConnections();
    silent.close();
  });

  it("writes only inside the model's folder", async () => {
    serveModel();
    Object.assign(server.repositories["someone/small"] as object, { "../../escaped": Buffer.from("x") });
    expect(await refusal(pull("someone/small"), "HUB")).to.include("../../escaped");
    expect(existsSync(join(directory, "escaped"))).to.equal(false);
  });

  it("refuses a second download into the same checkpoints directory", async () => {
    serveModel();
    server.cuts[WEIGHTS] = { afterBytes: CUT_BYTES, hangs: true };
    const interrupted = new AbortController();
    let second: Promise<unknown> | undefined;
    const onProgress = ({ doneBytes }: PullProgress) => {
      if (doneBytes < CUT_BYTES || second !== undefined) return;
      second = pull("someone/small").catch((error) => error);
      second.finally(() => interrupted.abort());
    };
    await pull("someone/small", { signal: interrupted.signal, onProgress }).catch(() => {});
    expect(await second).to.have.property("name", "DirectoryInUseError");
  });

  it("downloads a file again from the start if its partial file is longer than the listed size", async () => {
    const weights = serveModel();
    mkdirSync(join(directory, ".incomplete", "someone--small"), { recursive: true });
    writeFileSync(incomplete(WEIGHTS), randomBytes(weights.length + 1));
    await pull("someone/small");
    expect(statSync(inModel(WEIGHTS)).size).to.equal(weights.length);
  });
});
