import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { UNKNOWN_METADATA } from "../../../src/engine/metadata.js";
import type { MusicEngine } from "../../../src/engine/types.js";
import { DataSetEditor } from "../../../src/music/dataset/editor.js";
import { labelingWork } from "../../../src/music/dataset/label.js";
import type { LabelRequest } from "../../../src/music/request/training-bodies.js";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
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
    writeFileSync(join(root, "music/two.json"), '{"bpm": 77, "keyscale": "C major", "language": "fr"}');
    for (const name of ["one", "two"]) writeFileSync(join(root, `music/${name}.caption.txt`), "a drone");
  });
  beforeEach(() => client.post("/v1/dataset/scan", { audio_dir: "music" }));

  it("automatic labels add missing metadata, and keep existing descriptions", async () => {
    const { status, body } = await client.post("/v1/dataset/auto_label", {});
    expect(status, body.detail).to.equal(200);
    expect(body.data.message).to.equal("✅ Labeled 2/2 samples");
    expect(body.data.labeled_count).to.equal(2);
    const [instrumental, song] = body.data.samples;
    expect(instrumental).to.include({ labeled: true, lyrics: "[Instrumental]", language: "unknown" });
    expect(instrumental.bpm).to.be.within(30, 300);
    expect(song).to.include({ labeled: true, lyrics: "la la la", bpm: 77, keyscale: "C major" });
    expect(song).to.include({ caption: "a drone", language: "fr" });
    expect((await client.get("/v1/dataset/samples")).body.data.samples).to.deep.equal(body.data.samples);
    const again = await client.post("/v1/dataset/auto_label", { only_unlabeled: true });
    expect(again.body.data.samples[1]).to.include({ labeled: true, lyrics: "la la la" });
  });

  it("a model that writes no text labels no samples without a caption, and adds only metadata", async () => {
    mkdirSync(join(root, "bare"));
    writeRecording(join(root, "bare/three.wav"), { seconds: 2 });
    await client.post("/v1/dataset/scan", { audio_dir: "bare" });
    const { status, body } = await client.post("/v1/dataset/auto_label", {});
    expect(body.detail).to.match(
      /^No sample could be labeled; three\.wav: the language model .* does not write text/,
    );
    expect(status).to.equal(400);
    const sample = (await client.get("/v1/dataset/sample/0")).body.data;
    expect(sample).to.include({ labeled: false, caption: "" });
    expect(sample.bpm).to.be.within(30, 300);
    const refused = await client.post("/v1/dataset/preprocess", { output_dir: "tensors" });
    expect([refused.status, refused.body.detail]).to.deep.equal([
      400,
      "No labeled samples: add captions first",
    ]);
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

describe("labels of a model that writes text", () => {
  /** Labels three samples; the model writes captions, but none for the last one. */
  async function label(change: Partial<LabelRequest> = {}) {
    const root = realpathSync(temporaryDirectory());
    const set = [
      { audio_path: "one.wav" },
      { audio_path: "two.wav", lyrics: "own words", language: "fr" },
      { audio_path: "three.wav", language: "de" },
    ];
    for (const { audio_path } of set) writeRecording(join(root, audio_path), { seconds: 1 });
    writeFileSync(join(root, "set.json"), JSON.stringify(set));
    const captions = ["a waltz", "a song", " "];
    const sheet = { ...UNKNOWN_METADATA, lyrics: "heard words", language: "en", warnings: [] };
    const engine = {
      catalog: { languageModels: () => [] },
      planner: {
        prepareLanguageModel: async () => ({ name: "lm", writesText: true }),
        understand: async () => ({ ...sheet, caption: captions.shift() ?? "" }),
      },
      renderer: { encodeCodes: async () => new Int32Array() },
    };
    const permitted = new PermittedRoot(root);
    const editor = new DataSetEditor(permitted);
    await editor.load("set.json");
    const flags = { skipMetas: false, formatLyrics: false, transcribeLyrics: false, onlyUnlabeled: false };
    const request = { ...flags, languageModel: null, savePath: null, ...change };
    const work = await labelingWork(engine as unknown as MusicEngine, permitted, editor, request);
    const result = await work.run(work.progress, new AbortController().signal);
    return { ...result, labeled: editor.current.samples };
  }

  it("adds captions, keeps own lyrics and languages, and names a sample without a caption", async () => {
    const { message, labeled_count: count, labeled } = await label();
    expect(message).to.equal("✅ Labeled 2/3 samples\n⚠️ three.wav: the language model wrote no caption");
    expect(count).to.equal(2);
    const [waltz, song, without] = labeled;
    expect(waltz).to.include({ caption: "a waltz", labeled: true, is_instrumental: true });
    expect(song).to.include({ caption: "a song", lyrics: "own words", language: "fr" });
    expect(without).to.include({ caption: "", labeled: false, language: "de", lyrics: "[Instrumental]" });
  });

  it("replaces lyrics and their language with transcribe_lyrics", async () => {
    const [, song] = (await label({ transcribeLyrics: true })).labeled;
    expect(song).to.include({ lyrics: "heard words", language: "en" });
  });
});
