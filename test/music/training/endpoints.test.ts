import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { loadConfig } from "../../../src/config.js";
import { createEngine } from "../../../src/index.js";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { checkStartRequest } from "../../../src/music/training/trainer.js";
import { type SampleTensors, sampleTensors, writeSample } from "./sample-files.js";
import { type Kind, shortRun, startTrainingServer, type Trainer, type TrainingServer } from "./trainer.js";

describe("HTTP endpoints for training", () => {
  let server: TrainingServer;
  let trainer: Trainer;

  before(async () => {
    server = await startTrainingServer();
    trainer = server.trainer;
  });

  after(() => server.close());

  it("the training status is idle before the first run", async () => {
    expect(await trainer.status()).to.deep.equal({
      is_training: false,
      should_stop: false,
      current_step: 0,
      current_loss: null,
      status: "Idle",
      config: {},
      tensor_dir: "",
      loss_history: [],
      tensorboard_url: null,
      tensorboard_logdir: null,
      training_log: "",
      start_time: null,
      current_epoch: 0,
      steps_per_second: 0,
      estimated_time_remaining: 0,
      interrupted: null,
      error: null,
      state: "idle",
      run_id: null,
      adapter_type: null,
      total_steps: 0,
      total_epochs: 0,
      learning_rate: null,
      grad_norm: null,
      output_path: null,
    });
  });

  it("a stop request reports that no training is in progress, with or without a body", async () => {
    expect(await trainer.stop()).to.equal("No training in progress");
    const bare = await fetch(`${server.url}/v1/training/stop`, { method: "POST" });
    expect(bare.status).to.equal(200);
    expect((await trainer.status()).status).to.equal("Idle");
  });

  it("load_tensor_info describes a directory of sample files", async () => {
    const { body } = await trainer.client.post("/v1/training/load_tensor_info", { tensor_dir: "set" });
    expect(body.data).to.include({
      dataset_name: "test set",
      num_samples: 2,
      custom_tag: "tag",
      tensor_dir: "set",
    });
    expect(body.data.message).to.be.a("string");
    writeSample(trainer.path("plain/a.pt"), sampleTensors(1));
    const plain = await trainer.client.post("/v1/training/load_tensor_info", { tensor_dir: "plain" });
    expect(plain.body.data).to.include({ dataset_name: "Unknown", num_samples: 1, custom_tag: "" });
  });

  it("load_tensor_info reports why a directory is unusable", async () => {
    mkdirSync(trainer.path("empty"), { recursive: true });
    const cases: [path: string, detail: string][] = [
      ["absent", "Directory not found: absent"],
      ["set/manifest.json", "Not a directory: set/manifest.json"],
      ["empty", "No .pt tensor files found in empty"],
      ["..", "is outside"],
      ["", "tensor_dir is required"],
    ];
    for (const [tensor_dir, detail] of cases) {
      const answer = await trainer.client.post("/v1/training/load_tensor_info", { tensor_dir });
      expect(answer.status, tensor_dir).to.equal(400);
      expect(answer.body.detail).to.include(detail);
    }
  });

  it("an export without a trained adapter is answered with 404", async () => {
    const answer = await trainer.client.post("/v1/training/export", {
      export_path: "mine",
      lora_output_dir: "absent",
    });
    expect(answer.status).to.equal(404);
    expect(answer.body).to.deep.equal({
      detail: "No trained model found in absent",
      error: "No trained model found in absent",
    });
  });

  it("/v1/reinitialize reports that all models are already loaded", async () => {
    const { body } = await trainer.client.post("/v1/reinitialize", {});
    expect(body.data.message).to.match(/^✅ Service reinitialized/);
    expect(body.data.reloaded).to.deep.equal([]);
  });

  const kinds: Kind[] = ["start", "start_lokr"];
  for (const kind of kinds) {
    it(`unsupported parameters of ${kind} are rejected, and the error names the field`, async () => {
      const cases: [field: string, value: unknown][] = [
        ["tensor_dir", undefined],
        ["tensor_dir", 5],
        ["train_epochs", 0],
        ["train_batch_size", 0],
        ["gradient_accumulation", 0],
        ["save_every_n_epochs", 0],
        ["learning_rate", 0],
        ["training_shift", -1],
        [kind === "start" ? "lora_rank" : "lokr_linear_dim", 257],
        [kind === "start" ? "lora_alpha" : "lokr_linear_alpha", 513],
        [kind === "start" ? "lora_dropout" : "lokr_factor", 9],
      ];
      for (const [field, value] of cases) {
        const answer = await trainer.start({ ...shortRun, [field]: value }, kind);
        expect(answer.status, field).to.equal(400);
        expect(answer.body.detail).to.include(field);
      }
      expect((await trainer.status()).state).to.equal("idle");
    });

    it(`directories that ${kind} cannot use are rejected before a run starts`, async () => {
      mkdirSync(trainer.path("nothing"), { recursive: true });
      writeFileSync(trainer.path("file"), "");
      symlinkSync("/", trainer.path(`way-out-${kind}`));
      const cases: [change: object, detail: string][] = [
        [{ tensor_dir: "absent" }, "Tensor directory not found: absent"],
        [{ tensor_dir: "file" }, "Tensor directory not found: file"],
        [{ tensor_dir: "nothing" }, "No valid samples found in tensor directory"],
        [{ tensor_dir: ".." }, "Rejected unsafe tensor directory: .."],
        [{ tensor_dir: "/" }, "Rejected unsafe tensor directory: /"],
        [{ tensor_dir: `way-out-${kind}/tmp` }, "Rejected unsafe tensor directory"],
        [{ output_dir: "../elsewhere" }, "is outside"],
        [{ output_dir: "file" }, "file cannot be created"],
        [{ output_dir: "file/below" }, "file/below cannot be created"],
        [{ resume_from: "absent" }, "resume_from is not a directory: absent"],
        [{ resume_from: "/" }, "is outside"],
      ];
      for (const [change, detail] of cases) {
        const answer = await trainer.start({ ...shortRun, ...change }, kind);
        expect(answer.status, detail).to.equal(400);
        expect(answer.body.detail).to.include(detail);
      }
      expect((await trainer.status()).state).to.equal("idle");
    });
  }

  const broken: [what: string, change: (tensors: SampleTensors) => SampleTensors, mentions: string][] = [
    ["a missing tensor", ({ context_latents: _, ...rest }) => rest, "context_latents"],
    [
      "latents of another width",
      (tensors) => ({
        ...tensors,
        target_latents: { shape: [16, 3], values: new Float32Array(48) },
        context_latents: { shape: [16, 6], values: new Float32Array(96) },
      }),
      "target_latents",
    ],
    [
      "a context of another length",
      (tensors) => ({ ...tensors, context_latents: sampleTensors(1, 10).context_latents as never }),
      "context_latents",
    ],
    [
      "conditions of another model",
      (tensors) => ({ ...tensors, encoder_hidden_states: { shape: [6, 7], values: new Float32Array(42) } }),
      "encoder_hidden_states",
    ],
    [
      "latents with a superfluous dimension",
      (tensors) => ({ ...tensors, target_latents: { shape: [1, 2, 3], values: new Float32Array(6) } }),
      "target_latents",
    ],
    [
      "NaN among the latents",
      (tensors) => withInvalidValue(tensors, "target_latents", Number.NaN),
      "target_latents",
    ],
    [
      "infinity among the conditions",
      (tensors) => withInvalidValue(tensors, "encoder_hidden_states", Number.POSITIVE_INFINITY),
      "encoder_hidden_states",
    ],
  ];
  for (const [what, change, mentions] of broken) {
    it(`a training sample with ${what} is rejected, and the error names the file`, async () => {
      writeSample(trainer.path("broken/good.pt"), sampleTensors(1));
      writeSample(trainer.path("broken/spoiled.pt"), change(sampleTensors(2)));
      const answer = await trainer.start({ ...shortRun, tensor_dir: "broken" });
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include("spoiled.pt").and.include(mentions);
    });
  }

  it("a file that is not a training sample is rejected", async () => {
    mkdirSync(trainer.path("texts"), { recursive: true });
    for (const text of ["", "a diary", "PK\x03\x04 but no archive"]) {
      writeFileSync(trainer.path("texts/diary.pt"), text);
      const answer = await trainer.start({ ...shortRun, tensor_dir: "texts" });
      expect(answer.status).to.equal(400);
      expect(answer.body.detail).to.include("diary.pt");
    }
  });

  it("a training request is answered with 415 for other content types and with 400 for broken JSON", async () => {
    const post = (type: string, body: string) =>
      fetch(`${server.url}/v1/training/start`, { method: "POST", headers: { "Content-Type": type }, body });
    expect((await post("text/xml", "<a/>")).status).to.equal(415);
    expect((await post("application/json", "{")).status).to.equal(400);
  });

  it("a training request without a loaded model is answered with 500", async () => {
    const engine = createEngine(loadConfig({ SVC_DEVICE: "cpu" }));
    const paths = { tensorDir: "set", outputDir: "out", resumeFrom: null };
    const failure = await checkStartRequest(engine, new PermittedRoot(trainer.root), paths).catch(
      (error: unknown) => error,
    );
    expect(failure).to.include({ status: 500, detail: "Model not initialized" });
    await engine.close();
  });
});

function withInvalidValue(tensors: SampleTensors, name: string, value: number): SampleTensors {
  const { shape, values } = tensors[name] as SampleTensors[string];
  return {
    ...tensors,
    [name]: { shape, values: Float32Array.from(values, (old, i) => (i === 5 ? value : old)) },
  };
}

describe("HTTP endpoints for training on a server with an API key", () => {
  let server: TrainingServer;

  before(async () => {
    server = await startTrainingServer({ SVC_API_KEY: "k1" });
  });

  after(() => server.close());

  const posts = ["start", "start_lokr", "stop", "load_tensor_info", "export"].map(
    (name) => `training/${name}`,
  );
  for (const path of [...posts, "reinitialize"]) {
    it(`/v1/${path} requires the API key, in the header or the body`, async () => {
      const { client } = server;
      for (const [body, headers, isRight] of [
        [{}, {}, false],
        [{ ai_token: "k2" }, {}, false],
        [{}, { Authorization: "Bearer k2" }, false],
        [{ ai_token: "k1" }, {}, true],
        [{}, { Authorization: "Bearer k1" }, true],
      ] as const) {
        const { status } = await client.post(`/v1/${path}`, body, headers);
        expect(status === 401).to.equal(!isRight);
      }
    });
  }

  it("/v1/training/status requires the API key", async () => {
    const path = "/v1/training/status";
    expect((await server.client.get(path)).status).to.equal(401);
    expect((await server.client.get(path, { Authorization: "Bearer k1" })).status).to.equal(200);
  });
});
