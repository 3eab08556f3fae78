/** Tests the list of the adapters in the training root. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { savedAdapters } from "../../../src/music/training/saved-adapters.js";
import { startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("list of saved adapters", function () {
  this.timeout(60_000);
  const root = temporaryDirectory();
  const folders = [
    "adapters/polka",
    "adapters/tango",
    "adapters/waltz",
    "bands/cajun/final",
    "stopped/checkpoints/stopped_epoch_2_step_9",
    "zydeco/final",
  ];
  before(() => {
    for (const file of [
      "zydeco/final/adapter/adapter_config.json",
      "zydeco/checkpoints/epoch_1/adapter/adapter_config.json",
      "bands/cajun/final/adapter/adapter_config.json",
      "adapters/waltz/lokr_weights.safetensors",
      "adapters/tango/adapter/loha_weights.safetensors",
      "adapters/polka/pytorch_lora_weights.safetensors",
      "stopped/checkpoints/epoch_1/adapter/adapter_config.json",
      "stopped/checkpoints/stopped_epoch_2_step_9/adapter/adapter_config.json",
      "songs/tune.mp3",
    ]) {
      mkdirSync(join(root, file, ".."), { recursive: true });
      writeFileSync(join(root, file), "");
    }
  });

  it("saved adapters include folders of LoRA, LoKr and LoHa weights, and the latest checkpoint of a stopped run", async () => {
    expect(await savedAdapters(root)).to.deep.equal(folders);
  });

  it("the list of saved adapters is empty if the training root is missing", async () => {
    expect(await savedAdapters(join(root, "missing"))).to.deep.equal([]);
  });

  it("GET /v1/lora/available lists the saved adapters", async () => {
    const server = await startLiveServer(temporaryDirectory(), { SVC_TRAINING_ROOT: root });
    const { body } = await server.client.get("/v1/lora/available");
    await server.close();
    expect(body.data.adapters).to.deep.equal(folders);
    const { styles } = body.data;
    expect(styles.map(({ name }: { name: string }) => name)).to.include.members([
      "bands/cajun",
      "stopped",
      "zydeco",
    ]);
    for (const { saved_time } of styles) expect(Math.abs(Date.now() / 1000 - saved_time)).to.be.below(600);
  });
});
