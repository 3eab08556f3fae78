import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type LiveServer, oneSecondSong, serverForAll, shortSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

const envelopeKeys = ["data", "code", "error", "timestamp", "extra"];
const uuidV4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("POST /release_task and /query_result", () => {
  const server = serverForAll();
  const { client } = server;

  it("accepts a task, and returns its id in the response envelope", async () => {
    const { status, body } = await client.post("/release_task", oneSecondSong);
    expect(status).to.equal(200);
    expect(Object.keys(body)).to.deep.equal(envelopeKeys);
    expect(body).to.include({ code: 200, error: null, extra: null });
    expect(body.data.task_id).to.match(uuidV4);
    expect(body.data).to.include({ status: "queued", queue_position: 1 });
    await client.finished(body.data.task_id);
  });

  it("returns one record per song, with all fields of the API", async () => {
    const records = await client.make({
      ...shortSong,
      audio_format: "mp3",
      prompt: "slow bossa nova",
      bpm: 84,
      key_scale: "F major",
      time_signature: "4/4",
      batch_size: 2,
      use_random_seed: false,
      seed: "17,42",
    });
    expect(records).to.have.length(2);
    for (const record of records) {
      expect(record).to.include({
        wave: "",
        status: 1,
        env: "development",
        prompt: "slow bossa nova",
        lyrics: "[Instrumental]",
        seed_value: "17,42",
        dit_model: "carillon-nano",
        progress: 1,
        stage: "succeeded",
        error: null,
      });
      expect(record.create_time).to.be.closeTo(Date.now() / 1000, 60);
      expect(record.metas).to.deep.equal({
        bpm: 84,
        duration: 10,
        genres: "",
        keyscale: "F major",
        timesignature: "4",
        prompt: "slow bossa nova",
        lyrics: "",
      });
      expect(record.generation_info).to.match(/Total generation time \(2 songs\)/);
      expect(record.generation_info).to.match(/Steps:\s*1\n.*BPM:\s*84\n/s);
      expect(record.file).to.match(/^\/v1\/audio\?path=%2F.*\.mp3$/);
      expect((await client.download(record)).length).to.be.greaterThan(1000);
    }
    expect(records[0]?.file).to.not.equal(records[1]?.file);
  });

  it("makes a batch of eight songs", async () => {
    const records = await client.make({ ...oneSecondSong, batch_size: 8 });
    expect(records).to.have.length(8);
    expect(new Set(records[0]?.seed_value.split(",")).size).to.equal(8);
  });

  it("makes the same wav bytes from the same seed, and other bytes from another seed", async () => {
    const wav = { ...oneSecondSong, audio_format: "wav", use_random_seed: false };
    const bytes: Buffer[] = [];
    for (const seed of [7, 7, 8]) {
      const record = await client.makeOne({ ...wav, seed });
      expect(record.seed_value).to.equal(String(seed));
      bytes.push(await client.download(record));
    }
    const [first, again, other] = bytes as [Buffer, Buffer, Buffer];
    expect(first.equals(again)).to.equal(true);
    expect(first.equals(other)).to.equal(false);
  });

  it("uses timesteps in place of inference_steps", async () => {
    const wav = { ...oneSecondSong, audio_format: "wav", use_random_seed: false, seed: 3 };
    const custom = await client.makeOne({ ...wav, timesteps: "0.97,0.5,0.2,0", inference_steps: 8 });
    const plain = await client.makeOne({ ...wav, inference_steps: 8 });
    expect(custom.generation_info).to.match(/Steps: 3/);
    const bytes = [await client.download(custom), await client.download(plain)];
    expect((bytes[0] as Buffer).equals(bytes[1] as Buffer)).to.equal(false);
  });

  it("uses the default model for an unknown name, with a warning", async () => {
    const record = await client.makeOne({ ...oneSecondSong, model: "acestep/acestep-v15-other" });
    expect(record.dit_model).to.equal("carillon-nano");
    expect(record.warnings.join()).to.include("acestep-v15-other");
  });

  it("reports the progress of a task from queued to succeeded, and the progress never falls", async () => {
    const long = { ...shortSong, inference_steps: 4 };
    const first = await client.submit(long);
    const second = await client.submit(oneSecondSong);
    const waiting = await client.query(second);
    expect(waiting.records[0]).to.include({ stage: "queued", progress: 0, status: 0 });
    expect(waiting.item).to.include({ status: 0, queue_position: 1 });
    const values: number[] = [];
    const stages = new Set<string>();
    while (values.at(-1) !== 1) {
      await sleep(20);
      const [record] = (await client.query(first)).records;
      values.push(record?.progress as number);
      stages.add(record?.stage as string);
    }
    expect(values).to.deep.equal([...values].sort((a, b) => a - b));
    expect([...stages].some((stage) => stage !== "queued" && stage !== "succeeded")).to.equal(true);
    await client.finished(second);
  });

  it("returns the results of a query in the order of its ids, including repeated and unknown ids", async () => {
    const id = await client.submit(oneSecondSong);
    await client.finished(id);
    const { body } = await client.post("/query_result", { task_id_list: JSON.stringify([id, "nope", id]) });
    expect(body.data.map((item: { task_id: string }) => item.task_id)).to.deep.equal([id, "nope", id]);
    expect(body.data[1]).to.include({ task_id: "nope", status: 0, result: "[]", stage: "unknown" });
    expect(body.data[1].progress_text).to.include("unknown task");
    expect(body.data[0]).to.not.have.property("stage");
    expect((await client.post("/query_result", { task_id_list: [] })).body.data).to.deep.equal([]);
  });

  it("accepts a task as a form", async () => {
    const form = new URLSearchParams({
      ...shortSong,
      audio_duration: "10",
      inference_steps: "1",
      batch_size: "1",
    } as never);
    const answer = await fetch(`${server.url}/release_task`, { method: "POST", body: form });
    const { data } = (await answer.json()) as { data: { task_id: string } };
    expect((await client.finished(data.task_id)).records[0]?.prompt).to.equal("a short song");
  });

  const refusals: [what: string, parameters: object, mentions: string[]][] = [
    ["an unknown format", { audio_format: "midi" }, ["audio_format"]],
    ["an unknown task type", { task_type: "stem_separation" }, ["task_type"]],
    ["a task without its source", { task_type: "cover" }, ["cover", "src_audio"]],
    ["a wrong type", { prompt: { text: "x" } }, ["prompt"]],
  ];
  for (const [what, parameters, mentions] of refusals) {
    it(`refuses ${what}, and names it in the error`, async () => {
      const { status, body } = await client.post("/release_task", { ...shortSong, ...parameters });
      expect(status).to.equal(400);
      expect(body).to.deep.equal({ detail: body.detail, error: body.detail });
      for (const word of mentions) expect(body.detail).to.include(word);
    });
  }

  it("refuses a repeated field in any kind of body", async () => {
    const form = (Form: typeof URLSearchParams | typeof FormData) => {
      const body = new Form();
      for (const prompt of ["one", "two"]) body.append("prompt", prompt);
      return fetch(`${server.url}/release_task`, { method: "POST", body });
    };
    const json = fetch(`${server.url}/release_task`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"prompt":"one","prompt":"two"}',
    });
    for (const answer of await Promise.all([form(URLSearchParams), form(FormData), json])) {
      expect(answer.status).to.equal(400);
      expect(((await answer.json()) as { detail: string }).detail).to.include("prompt");
    }
    expect((await client.get("/v1/tasks?limit=1")).body.data.tasks[0]?.prompt).to.not.be.oneOf([
      "one",
      "two",
    ]);
  });

  it("accepts the ids of a query as repeated fields of a form, with or without brackets", async () => {
    const ids = ["one", "two"];
    const ask = async (body: URLSearchParams | FormData) => {
      const answer = await fetch(`${server.url}/query_result`, { method: "POST", body });
      return ((await answer.json()) as { data: { task_id: string }[] }).data.map((item) => item.task_id);
    };
    for (const name of ["task_id_list", "task_id_list[]"]) {
      const form = new URLSearchParams(ids.map((id) => [name, id]));
      expect(await ask(form)).to.deep.equal(ids);
      const multipart = new FormData();
      for (const id of ids) multipart.append(name, id);
      expect(await ask(multipart)).to.deep.equal(ids);
    }
    const text = new FormData();
    text.append("task_id_list", JSON.stringify(ids));
    expect(await ask(text)).to.deep.equal(ids);
    expect(await ask(new URLSearchParams({ task_id_list: "one" }))).to.deep.equal(["one"]);
  });

  it("refuses a query without ids or with invalid ids", async () => {
    const wrongName = await client.post("/query_result", { task_ids: ["one"], verbose: true });
    expect(wrongName.status).to.equal(400);
    expect(wrongName.body.detail).to.equal('task_id_list is missing; the body holds "task_ids", "verbose"');
    expect((await client.post("/query_result", {})).body.detail).to.include("no keys");
    expect((await client.post("/query_result", { task_id_list: [{}] })).status).to.equal(400);
  });
});

describe("task requests with numbers out of range", () => {
  const outOfRange = { ...shortSong, bpm: 9999, audio_duration: 2 };
  let clamping: LiveServer;
  let refusing: LiveServer;

  before(async () => {
    clamping = await startLiveServer(temporaryDirectory());
    refusing = await startLiveServer(temporaryDirectory(), { SVC_RANGE_POLICY: "refuse" });
  });

  after(() => Promise.all([clamping.close(), refusing.close()]));

  it("numbers out of range are clamped, with warnings at submission and in the result", async () => {
    const { client } = clamping;
    const { data } = (await client.post("/release_task", outOfRange)).body;
    expect(data.warnings).to.have.length(2);
    expect(data.warnings.join()).to.include("bpm").and.include("audio_duration");
    const [song] = (await client.finished(data.task_id)).records;
    expect(song?.metas).to.include({ bpm: 300, duration: 10 });
    expect(song?.warnings).to.deep.equal(data.warnings);
  });

  for (const [parameters, mentions] of [
    [{ audio_duration: 5 }, ["audio_duration", "10", "600", "5"]],
    [{ inference_steps: 21 }, ["inference_steps", "1", "20", "21"]],
    [{ batch_size: 9 }, ["batch_size", "8", "9"]],
  ] as const) {
    it(`numbers out of range are refused with SVC_RANGE_POLICY=refuse: ${mentions[0]}`, async () => {
      const { status, body } = await refusing.client.post("/release_task", {
        ...shortSong,
        ...parameters,
      });
      expect(status).to.equal(400);
      for (const word of mentions) expect(body.detail).to.include(word);
    });
  }
});
