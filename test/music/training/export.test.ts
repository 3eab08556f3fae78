import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { HttpError } from "../../../src/music/errors.js";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { exportAdapter } from "../../../src/music/training/export.js";
import { temporaryDirectory } from "../tasks.js";

describe("export of a trained adapter", () => {
  let directory: string;
  let root: PermittedRoot;

  beforeEach(() => {
    directory = realpathSync(temporaryDirectory());
    root = new PermittedRoot(directory);
  });

  function write(path: string, text: string): void {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }

  function read(path: string): string {
    return readFileSync(join(directory, path), "utf8");
  }

  function writeLora(folder: string, weights: string): void {
    write(`${folder}/adapter/adapter_config.json`, "{}");
    write(`${folder}/adapter/adapter_model.safetensors`, weights);
    write(`${folder}/training_state.safetensors`, "moments");
  }

  const run = (exportPath = "mine", outputDir = "out") =>
    exportAdapter(root, { exportPath, outputDir, foldAlpha: false, comfySingleFile: false });

  async function refusalOf(exporting: Promise<unknown>): Promise<HttpError> {
    const failure = await exporting.catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(HttpError);
    return failure as HttpError;
  }

  it("copies the final adapter, without training state, to the export folder and its subfolder adapter/", async () => {
    writeLora("out/checkpoints/epoch_5_loss_0.1000", "five");
    writeLora("out/final", "final");
    expect(await run()).to.deep.equal({
      message: "LoRA exported successfully",
      export_path: join(directory, "mine"),
      source: join(directory, "out/final"),
    });
    for (const folder of ["mine", "mine/adapter"]) {
      expect(read(`${folder}/adapter_model.safetensors`)).to.equal("final");
      expect(read(`${folder}/adapter_config.json`)).to.equal("{}");
    }
    expect(existsSync(join(directory, "mine/training_state.safetensors"))).to.equal(false);
    expect(readdirSync(directory).sort()).to.deep.equal(["mine", "out"]);
  });

  it("exports the checkpoint of the last epoch if there is no final adapter", async () => {
    for (const epoch of [2, 10, 9]) {
      write(`out/checkpoints/epoch_${epoch}_loss_0.1000/lokr_weights.safetensors`, `epoch ${epoch}`);
    }
    await run("new/deep/folder");
    expect(read("new/deep/folder/lokr_weights.safetensors")).to.equal("epoch 10");
  });

  describe("export of the adapter of a stopped run", () => {
    const checkpoint = (name: string) => write(`out/checkpoints/${name}/lokr_weights.safetensors`, name);
    const exported = async () => {
      await run();
      return read("mine/lokr_weights.safetensors");
    };

    it("exports the checkpoint written at the stop if no epoch was finished", async () => {
      checkpoint("stopped_epoch_1_step_3");
      expect(await exported()).to.equal("stopped_epoch_1_step_3");
    });

    it("prefers the checkpoint written at the stop to the epoch before it", async () => {
      checkpoint("epoch_10_loss_0.1000");
      checkpoint("stopped_epoch_11_step_9");
      checkpoint("stopped_epoch_11_step_40");
      expect(await exported()).to.equal("stopped_epoch_11_step_40");
    });

    it("prefers the epoch that a resumed run finished after the stop", async () => {
      checkpoint("stopped_epoch_11_step_40");
      checkpoint("epoch_11_loss_0.1000");
      expect(await exported()).to.equal("epoch_11_loss_0.1000");
    });

    it("prefers the checkpoint written at the stop to the final adapter of an earlier run", async () => {
      write("out/final/lokr_weights.safetensors", "final");
      utimesSync(join(directory, "out/final"), 1_700_000_000, 1_700_000_000);
      checkpoint("stopped_epoch_21_step_90");
      expect(await exported()).to.equal("stopped_epoch_21_step_90");
    });
  });

  it("an export may replace an earlier export or an empty folder", async () => {
    writeLora("out/final", "first");
    await run();
    writeLora("out/final", "second");
    await run();
    expect(read("mine/adapter_model.safetensors")).to.equal("second");
    mkdirSync(join(directory, "empty"));
    await run("empty");
    expect(read("empty/adapter/adapter_model.safetensors")).to.equal("second");
  });

  it("answers 404 without a trained adapter", async () => {
    const nothing = await refusalOf(run());
    expect(nothing).to.include({ status: 404, detail: "No trained model found in out" });
    mkdirSync(join(directory, "out/checkpoints/notes"), { recursive: true });
    expect(await refusalOf(run())).to.include({ status: 404, detail: "No checkpoints found" });
  });

  it("overwrites only folders that contain nothing but an export", async () => {
    writeLora("out/final", "final");
    write("songs/mine.mp3", "a song");
    write("mixed/lokr_weights.safetensors", "an adapter");
    write("mixed/diary.txt", "a text");
    write("nested/adapter/diary.txt", "a text");
    write("file", "a file");
    for (const path of ["songs", "mixed", "nested", "file", ".", "out"]) {
      expect(await refusalOf(run(path)), path).to.have.property("status", 400);
    }
    expect(read("songs/mine.mp3")).to.equal("a song");
    expect(read("mixed/diary.txt")).to.equal("a text");
    expect(read("nested/adapter/diary.txt")).to.equal("a text");
    expect(read("file")).to.equal("a file");
  });

  it("rejects a target that is the trained adapter, inside it, or outside the root", async () => {
    writeLora("out/final", "final");
    for (const path of ["out/final", "out/final/adapter", "out/final/new", "../elsewhere", "/elsewhere"]) {
      expect(await refusalOf(run(path)), path).to.have.property("status", 400);
    }
    expect(await refusalOf(run("mine", "../elsewhere"))).to.have.property("status", 400);
    expect(read("out/final/adapter/adapter_model.safetensors")).to.equal("final");
  });

  it("a failed export reports the reason, keeps the earlier export and leaves no temporary files", async () => {
    writeLora("out/final", "final");
    write("blocked", "a file");
    const failure = await refusalOf(run("blocked/mine"));
    expect(failure.detail).to.include("blocked/mine");
    expect(readdirSync(directory).sort()).to.deep.equal(["blocked", "out"]);
  });
});
