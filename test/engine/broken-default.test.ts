import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { checkMusicSettings } from "../../src/cli/start-checks.js";
import { createEngine, loadConfig } from "../../src/index.js";
import { temporaryDirectory } from "../music/tasks.js";

describe("fallback from a broken default checkpoint to the built-in model", () => {
  const directory = temporaryDirectory();
  const model = join(directory, "acestep-v15-turbo");
  const languageModel = join(directory, "acestep-5Hz-lm-0.6B");
  const config = loadConfig({
    SVC_CHECKPOINTS: directory,
    SVC_HOME: temporaryDirectory(),
    SVC_DEVICE: "cpu",
  });

  function write(folder: string): void {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "config.json"), '{"is_turbo":true}');
    writeFileSync(join(folder, "model.safetensors"), "not weights");
  }

  it("a broken default checkpoint passes the check of settings, but is replaced by the built-in model on loading", async () => {
    for (const folder of [model, languageModel, join(model, "vae"), join(model, "text_encoder")])
      write(folder);
    await checkMusicSettings(config);
    const lines: string[] = [];
    const engine = createEngine(config, (line) => lines.push(line));
    try {
      await engine.loader.loadSlot(1, null);
      await engine.loader.loadLanguageModel(null);
      expect(engine.catalog.slots()[0]?.model).to.equal("carillon-nano");
      expect(engine.catalog.loadedLanguageModel()).to.equal("carillon-nano/lm");
      expect(lines.filter((line) => line.includes("IS BROKEN"))).to.have.length(2);
      const failure = await engine.loader
        .loadSlot(1, "acestep-v15-turbo")
        .catch((error: Error) => error.message);
      expect(failure, "requested by name").to.include("acestep-v15-turbo");
    } finally {
      await engine.close();
    }
  });

  it("a default checkpoint with a missing part is also replaced by the built-in model", async () => {
    rmSync(join(model, "text_encoder"), { recursive: true });
    await checkMusicSettings(config);
    const engine = createEngine(config);
    expect(engine.catalog.usesEmbeddedModel).to.equal(true);
    await engine.close();
  });
});
