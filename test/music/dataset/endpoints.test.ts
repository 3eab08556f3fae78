import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { taskStatus } from "../../../src/music/dataset/sample-work.js";
import { writeRecording, writeSilence } from "../audio/recordings.js";
import { type Answer, oneSecondSong, serverForAll, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

const SECONDS = 2;

describe("data set endpoints", () => {
  const root = realpathSync(temporaryDirectory());
  const { client } = serverForAll({ SVC_TRAINING_ROOT: root });

  async function expectRefusal(answer: Promise<Answer>, status: number, detail: string): Promise<void> {
    const { status: given, body } = await answer;
    expect(body.detail).to.contain(detail);
    expect(given).to.equal(status);
  }

  const put = async (path: string, body: unknown): Promise<Answer> => {
    const response = await fetch(client.url + path, {
      method: "PUT",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };

  it("the endpoints answer 400 before a data set is loaded", async () => {
    await expectRefusal(client.get("/v1/dataset/samples"), 400, "No dataset loaded");
    await expectRefusal(client.get("/v1/dataset/sample/0"), 400, "No dataset loaded");
    await expectRefusal(
      client.post("/v1/dataset/preprocess", { output_dir: "out" }),
      400,
      "No dataset loaded",
    );
    await expectRefusal(
      client.post("/v1/dataset/save", { save_path: "set.json", dataset_name: "set" }),
      400,
      "No dataset to save",
    );
    const { data } = (await client.get("/v1/dataset/preprocess_status")).body;
    expect(data).to.deep.equal({ task_id: null, status: "idle", progress: "", current: 0, total: 0 });
    await expectRefusal(client.get("/v1/dataset/preprocess_status/none"), 404, "Task not found");
  });

  describe("data set made from a folder of music", () => {
    before(() => {
      const music = join(root, "music");
      mkdirSync(music);
      writeRecording(join(music, "one.mp3"), { seconds: SECONDS });
      writeFileSync(join(music, "one.caption.txt"), "a waltz");
      writeFileSync(join(music, "one.txt"), "la la la");
      writeRecording(join(music, "two.wav"), { seconds: SECONDS + 1, channels: 1, sampleRate: 22050 });
    });

    it("scans a folder of music into a data set", async () => {
      const { status, body } = await client.post("/v1/dataset/scan", {
        audio_dir: "music",
        custom_tag: "zydeco",
      });
      expect(status).to.equal(200);
      expect(body.data.num_samples).to.equal(2);
      expect(body.data.message).to.equal("✅ Found 2 audio files in music");
      expect(body.data.samples[0]).to.deep.equal({
        index: 0,
        filename: "one.mp3",
        audio_path: join(root, "music/one.mp3"),
        duration: SECONDS,
        caption: "a waltz",
        genre: "",
        prompt_override: null,
        lyrics: "la la la",
        bpm: null,
        keyscale: "",
        timesignature: "",
        language: "unknown",
        is_instrumental: false,
        labeled: true,
      });
    });

    it("returns all samples, and updates one sample", async () => {
      const { data } = (await client.get("/v1/dataset/samples")).body;
      expect(data).to.include({ dataset_name: "my_lora_dataset", num_samples: 2, labeled_count: 1 });
      const change = { sample_idx: 0, caption: "a march", bpm: "90", keyscale: "C major", language: "en" };
      const updated = await put("/v1/dataset/sample/1", change);
      expect(updated.body.data.message).to.equal("✅ Updated sample 1: two.wav");
      const sample = (await client.get("/v1/dataset/sample/1")).body.data;
      expect(sample).to.deep.equal(updated.body.data.sample);
      expect(sample).to.include({
        index: 1,
        caption: "a march",
        bpm: 90,
        keyscale: "C major",
        labeled: true,
      });
      expect(sample).to.include({ is_instrumental: true, lyrics: "[Instrumental]", language: "en" });
      expect(sample).to.include.all.keys("id", "raw_lyrics", "formatted_lyrics", "custom_tag");
    });

    it("rejects unknown sample numbers and invalid values", async () => {
      for (const index of ["2", "-1", "1.5", "x", "99999999999"]) {
        await expectRefusal(client.get(`/v1/dataset/sample/${index}`), 404, "out of range");
        await expectRefusal(put(`/v1/dataset/sample/${index}`, {}), 404, "out of range");
      }
      await expectRefusal(put("/v1/dataset/sample/0", { bpm: "fast" }), 400, "bpm must be a number");
      await expectRefusal(
        put("/v1/dataset/sample/0", { prompt_override: "x" }),
        400,
        "prompt_override must be one of",
      );
      const { status, headers } = await client.post("/v1/dataset/sample/0", {});
      expect([status, headers.get("allow")]).to.deep.equal([405, "GET, PUT, HEAD"]);
    });

    it("saves and loads the data set, and refuses to overwrite a file that is not a data set", async () => {
      const wish = {
        save_path: "sets/mine.json",
        dataset_name: "mine",
        genre_ratio: 50,
        tag_position: "prepend",
      };
      expect((await client.post("/v1/dataset/save", wish)).body.data.save_path).to.equal("sets/mine.json");
      expect((await client.post("/v1/dataset/save", wish)).status).to.equal(200);
      const written = JSON.parse(readFileSync(join(root, "sets/mine.json"), "utf8"));
      expect(written.metadata).to.include({
        name: "mine",
        custom_tag: "zydeco",
        genre_ratio: 50,
        num_samples: 2,
      });
      writeFileSync(join(root, "package.json"), "{}");
      await expectRefusal(
        client.post("/v1/dataset/save", { ...wish, save_path: "package.json" }),
        400,
        "exists and is not a data set",
      );
      await expectRefusal(client.post("/v1/dataset/save", { ...wish, save_path: "x.txt" }), 400, ".json");
      const { data } = (await client.post("/v1/dataset/load", { dataset_path: "sets/mine.json" })).body;
      expect(data).to.include({ dataset_name: "mine", num_samples: 2, labeled_count: 2 });
      await expectRefusal(client.post("/v1/dataset/load", { dataset_path: "package.json" }), 400, "samples");
      await expectRefusal(client.post("/v1/dataset/load", { dataset_path: "absent.json" }), 400, "not found");
      writeFileSync(join(root, "secret.txt"), "password = hunter2");
      const refused = await client.post("/v1/dataset/load", { dataset_path: "secret.txt" });
      expect(refused.body.detail).to.match(/secret\.txt is not JSON$/);
    });

    it("finds the recordings of a data set from Windows beside its file, and names the missing ones", async () => {
      const names = [
        "C:\\songs\\music\\one.mp3",
        "D:/other\\TWO.WAV",
        "..\\music\\two.wav",
        "C:\\songs\\gone.mp3",
      ];
      const samples = [...names.map((audio_path) => ({ audio_path })), { filename: "one.mp3" }];
      writeFileSync(join(root, "music/windows.json"), `\uFEFF${JSON.stringify(samples)}`);
      const { status, body } = await client.post("/v1/dataset/load", { dataset_path: "music/windows.json" });
      expect(status, body.detail).to.equal(200);
      expect(body.data.message).to.equal(
        "✅ Loaded dataset 'untitled_dataset' with 5 samples\n" +
          "⚠️ C:\\songs\\gone.mp3 was not found; copy gone.mp3 into the folder of the data set",
      );
      const paths = body.data.samples.map(({ audio_path }: { audio_path: string }) => audio_path);
      paths.splice(3, 1);
      expect(paths).to.deep.equal(
        ["one.mp3", "two.wav", "two.wav", "one.mp3"].map((name) => join(root, "music", name)),
      );
      await client.post("/v1/dataset/load", { dataset_path: "sets/mine.json" });
    });

    it("preprocessing writes training files, and a manifest that lists the files", async () => {
      const { status, body } = await client.post("/v1/dataset/preprocess", { output_dir: "tensors" });
      expect(status, body.detail).to.equal(200);
      expect(body.data).to.deep.equal({
        message: "✅ Preprocessed 2/2 samples to tensors",
        output_dir: "tensors",
        num_tensors: 2,
      });
      const manifest = JSON.parse(readFileSync(join(root, "tensors/manifest.json"), "utf8"));
      expect(manifest).to.include({ num_samples: 2 });
      expect(manifest.metadata).to.include({ name: "mine", custom_tag: "zydeco", tag_position: "prepend" });
      expect(readdirSync(join(root, "tensors")).sort()).to.deep.equal(
        [...manifest.samples, "manifest.json"].sort(),
      );
      const info = await client.post("/v1/training/load_tensor_info", { tensor_dir: "tensors" });
      expect(info.body.data).to.include({ dataset_name: "mine", num_samples: 2, custom_tag: "zydeco" });
    });

    it("an adapter can be trained on the preprocessed samples", async () => {
      const wish = { tensor_dir: "tensors", lora_output_dir: "lora", train_epochs: 1, lora_rank: 2 };
      const started = await client.post("/v1/training/start", wish);
      expect(started.status, started.body.detail).to.equal(200);
      const status = async () => (await client.get("/v1/training/status")).body.data;
      while ((await status()).is_training) await sleep(20);
      expect(await status()).to.include({ state: "completed", error: null });
      expect(existsSync(join(root, "lora/final"))).to.equal(true);
    });

    it("preprocessing runs in the background while songs are made, and reports its progress", async () => {
      const song = client.makeOne(oneSecondSong);
      const { data } = (await client.post("/v1/dataset/preprocess_async", { output_dir: "again" })).body;
      expect(data).to.include({ message: "Preprocessing started", total: 2 });
      await expectRefusal(
        client.post("/v1/dataset/preprocess", { output_dir: "other" }),
        400,
        "already in progress",
      );
      const status = await finishedTask(data.task_id);
      expect(status).to.deep.include({ status: "completed", current: 2, total: 2 });
      expect(status.result).to.include({ output_dir: "again", num_tensors: 2 });
      expect((await client.get("/v1/dataset/preprocess_status")).body.data).to.deep.equal(status);
      expect(await song).to.have.property("file");
      for (const name of readdirSync(join(root, "tensors"))) {
        expect(
          readFileSync(join(root, "again", name)).equals(readFileSync(join(root, "tensors", name))),
        ).to.equal(true, `${name} differs`);
      }
    });

    it("preprocessing with skip_existing keeps finished files", async () => {
      const [name] = readdirSync(join(root, "again")).filter((file) => file.endsWith(".pt")) as [string];
      writeFileSync(join(root, "again", name), "kept");
      await client.post("/v1/dataset/preprocess", { output_dir: "again", skip_existing: true });
      expect(readFileSync(join(root, "again", name), "utf8")).to.equal("kept");
    });

    it("preprocessing reports a failing sample and continues with the others", async () => {
      const set = JSON.parse(readFileSync(join(root, "sets/mine.json"), "utf8"));
      set.samples[0].audio_path = "../music/gone.mp3";
      set.samples.push({ audio_path: "/etc/hosts", filename: "hosts", caption: "x", labeled: true });
      writeFileSync(join(root, "sets/broken.json"), JSON.stringify(set));
      await client.post("/v1/dataset/load", { dataset_path: "sets/broken.json" });
      const { data } = (await client.post("/v1/dataset/preprocess", { output_dir: "rest" })).body;
      expect(data.num_tensors).to.equal(1);
      expect(data.message).to.match(
        /^✅ Preprocessed 1\/3 samples to rest\n⚠️ one\.mp3: .*\n⚠️ hosts: .*unsafe path/,
      );
      expect(JSON.parse(readFileSync(join(root, "rest/manifest.json"), "utf8")).num_samples).to.equal(1);

      set.samples.splice(1, 1);
      writeFileSync(join(root, "sets/broken.json"), JSON.stringify(set));
      await client.post("/v1/dataset/load", { dataset_path: "sets/broken.json" });
      const { task_id } = (await client.post("/v1/dataset/preprocess_async", { output_dir: "nothing" })).body
        .data;
      const status = await finishedTask(task_id);
      expect(status).to.include({ status: "failed" });
      expect(status.error).to.match(/^No sample could be prepared; one\.mp3: /);
      expect(existsSync(join(root, "nothing/manifest.json"))).to.equal(false);
    });

    it("preprocessing names the samples that it leaves out", async () => {
      const set = JSON.parse(readFileSync(join(root, "sets/mine.json"), "utf8"));
      Object.assign(set.samples[1], { labeled: false });
      set.samples.push({ audio_path: "../music/two.wav", filename: "bare.wav" });
      writeFileSync(join(root, "sets/part.json"), JSON.stringify(set));
      await client.post("/v1/dataset/load", { dataset_path: "sets/part.json" });
      const { data } = (await client.post("/v1/dataset/preprocess", { output_dir: "part" })).body;
      expect(data.message.split("\n")).to.deep.equal([
        "✅ Preprocessed 1/3 samples to part",
        "⚠️ two.wav: is not labeled and is skipped",
        "⚠️ bare.wav: has no caption and is skipped",
      ]);
    });

    it("rejects paths outside the training root, and bodies without a required field", async () => {
      const outside = [
        ["/v1/dataset/scan", { audio_dir: "/etc" }],
        ["/v1/dataset/load", { dataset_path: "../set.json" }],
        ["/v1/dataset/save", { save_path: "/tmp/set.json", dataset_name: "x" }],
        ["/v1/dataset/preprocess", { output_dir: "../out" }],
        ["/v1/dataset/preprocess_async", { output_dir: "/out" }],
      ] as const;
      for (const [path, body] of outside) {
        await expectRefusal(client.post(path, body), 400, "Rejected unsafe path");
        await expectRefusal(client.post(path, {}), 400, "is required");
      }
      await expectRefusal(
        client.post("/v1/dataset/preprocess", { output_dir: "sets/mine.json" }),
        400,
        "sets/mine.json cannot be created",
      );
      await expectRefusal(
        client.post("/v1/dataset/scan", { audio_dir: "absent" }),
        400,
        "Directory not found",
      );
      expect((await client.get("/health")).status).to.equal(200);
    });
  });

  async function finishedTask(id: string) {
    for (;;) {
      const { data } = (await client.get(`/v1/dataset/preprocess_status/${id}`)).body;
      if (data.status !== "running") return data;
      expect(data.progress).to.match(/^Preprocessing [12]\/2$/);
      await sleep(20);
    }
  }
});

describe("end of a running preprocessing when the server stops", () => {
  it("a running preparation is aborted when the server stops, and leaves no partial files", async () => {
    const root = realpathSync(temporaryDirectory());
    mkdirSync(join(root, "music"));
    writeSilence(join(root, "music/long.flac"), 240);
    writeFileSync(join(root, "music/long.caption.txt"), "silence");
    const server = await startLiveServer(temporaryDirectory(), { SVC_TRAINING_ROOT: root });
    await server.client.post("/v1/dataset/scan", { audio_dir: "music" });
    const { status } = await server.client.post("/v1/dataset/preprocess_async", { output_dir: "tensors" });
    await server.close();
    expect(status).to.equal(200);
    expect(taskStatus(server.service.local.preprocessing, null)).to.include({ status: "failed" });
    expect(readdirSync(join(root, "tensors"))).to.deep.equal([]);
  });
});
