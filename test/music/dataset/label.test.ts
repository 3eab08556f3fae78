import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { writeRecording } from "../audio/recordings.js";
import { serverForAll } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("labeling of data set samples by the models", () => {
  const root = realpathSync(temporaryDirectory());
  const { client } = serverForAll({ SVC_TRAINING_ROOT: root });

  before(() => {
    mkdirSync(join(root, "music"));
    writeRecording(join(root, "music/one.mp3"), { seconds: 2 });
    writeRecording(join(root, "music/two.wav"), { seconds: 2 });
    writeFileSync(join(root, "music/two.txt"), "la la la");
    writeFileSync(join(root, "music/two.json"), '{"bpm": 77, "keyscale": "C major"}');
  });
  beforeEach(() => client.post("/v1/dataset/scan", { audio_dir: "music" }));

  it("automatic labels describe samples without a caption, and keep existing descriptions", async () => {
    const { status, body } = await client.post("/v1/dataset/auto_label", {});
    expect(status, body.detail).to.equal(200);
    expect(body.data.message).to.equal("✅ Labeled 2/2 samples");
    expect(body.data.labeled_count).to.equal(2);
    const [instrumental, song] = body.data.samples;
    expect(instrumental).to.include({ labeled: true, lyrics: "[Instrumental]", language: "unknown" });
    expect(instrumental.bpm).to.be.within(30, 300);
    expect(song).to.include({ labeled: true, lyrics: "la la la", bpm: 77, keyscale: "C major" });
    expect((await client.get("/v1/dataset/samples")).body.data.samples).to.deep.equal(body.data.samples);
    const again = await client.post("/v1/dataset/auto_label", { only_unlabeled: true });
    expect(again.body.data.samples[1]).to.include({ labeled: true, lyrics: "la la la" });
  });

  it("with transcribe_lyrics the language model writes the lyrics; with skip_metas no metadata are added", async () => {
    const wish = { transcribe_lyrics: true, skip_metas: true };
    const { samples } = (await client.post("/v1/dataset/auto_label", wish)).body.data;
    expect(samples[0]).to.include({ bpm: null, keyscale: "", timesignature: "" });
    const sample = (await client.get("/v1/dataset/sample/1")).body.data;
    expect(sample).to.include({ bpm: 77, raw_lyrics: "la la la", timesignature: "" });
    expect(sample.lyrics).to.equal(sample.formatted_lyrics || "la la la");
  });

  it("auto_label_async labels in the background and saves after each sample", async () => {
    const { data } = (await client.post("/v1/dataset/auto_label_async", { save_path: "sets/set.json" })).body;
    expect(data).to.include({ message: "Auto-labeling started", total: 2 });
    const refused = await client.post("/v1/dataset/auto_label", {});
    expect([refused.status, refused.body.detail]).to.deep.equal([400, "Labeling already in progress"]);
    const status = await finished(data.task_id);
    expect(status).to.include({ status: "completed", current: 2, total: 2, save_path: "sets/set.json" });
    expect(status).to.include({ last_updated_index: 1 });
    expect(status.last_updated_sample).to.deep.equal(status.result.samples[1]);
    const saved = JSON.parse(readFileSync(join(root, "sets/set.json"), "utf8"));
    expect(saved.samples.every(({ labeled }: { labeled: boolean }) => labeled)).to.equal(true);
    const lines = readFileSync(join(root, "sets/set.json.autolabel.jsonl"), "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).index)).to.deep.equal([0, 1]);
  });

  it("labeling with an unsafe path or a missing model is rejected; an unknown labeling task gets status 404", async () => {
    const refused = async (body: object, detail: string) => {
      const answer = await client.post("/v1/dataset/auto_label", body);
      expect(answer.body.detail).to.contain(detail);
      expect(answer.status).to.equal(400);
    };
    await refused({ save_path: "/etc/set.json" }, "Rejected unsafe path");
    await refused({ lm_model_path: "no-such-model" }, "no-such-model");
    const unknown = await client.get("/v1/dataset/auto_label_status/none");
    expect([unknown.status, unknown.body.detail]).to.deep.equal([404, "Task not found"]);
  });

  async function finished(id: string) {
    for (;;) {
      const { data } = (await client.get(`/v1/dataset/auto_label_status/${id}`)).body;
      if (data.status !== "running") return data;
      expect(data.progress).to.match(/^Labeling [12]\/2$/);
      await sleep(20);
    }
  }
});
