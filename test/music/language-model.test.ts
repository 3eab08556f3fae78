import { expect } from "chai";
import { type Client, type LiveServer, shortSong, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const languageModel = "carillon-nano/lm";

describe("songs without a loaded language model", () => {
  let server: LiveServer;
  let client: Client;

  before(async () => {
    server = await startLiveServer(temporaryDirectory(), { SVC_INIT_LLM: "false" });
    client = server.client;
  });

  after(() => server.close());

  it("do not load one for wishes that can be done without", async () => {
    const record = await client.makeOne({ ...shortSong, use_cot_caption: true, use_cot_language: true });
    expect(record).to.include({ lm_model: "" });
    expect(record.metas).to.include({ bpm: null, keyscale: "", timesignature: "" });
    expect((await client.get("/health")).body.data.llm_initialized).to.equal(false);
  });

  it("last thirty seconds where nobody says how long", async () => {
    const record = await client.makeOne({ ...shortSong, audio_duration: null });
    expect(record.metas).to.include({ duration: 30 });
  });

  it("load one when they think", async () => {
    const record = await client.makeOne({ ...shortSong, thinking: true });
    expect(record).to.include({ lm_model: languageModel });
    expect((await client.get("/health")).body.data.loaded_lm_model).to.equal(languageModel);
  });
});

describe("songs with the language model", () => {
  let server: LiveServer;
  let client: Client;
  const messages: string[] = [];

  before(async () => {
    const log = (message: string) => void messages.push(message);
    server = await startLiveServer(temporaryDirectory(), { SVC_INIT_LLM: "true" }, log);
    client = server.client;
  });

  after(() => server.close());

  const seeded = { ...shortSong, use_random_seed: false, seed: 11 };

  it("fill what the client left open and keep what it set", async () => {
    const record = await client.makeOne({ ...seeded, bpm: 123 });
    expect(record.lm_model).to.equal(languageModel);
    expect(record.metas).to.include({ bpm: 123, duration: 10 });
    expect(record.metas.keyscale).to.match(/^[A-G].* (major|minor)$/);
    expect(record.metas.timesignature).to.be.oneOf(["2", "3", "4", "6"]);
    expect(record.prompt).to.equal(shortSong.prompt);
  });

  it("tell the log what was forced and what was written, where they are asked to", async () => {
    const debugLines = async (parameters: object) => {
      messages.length = 0;
      await client.makeOne({ ...seeded, bpm: 123, ...parameters });
      return messages.filter((message) => message.includes("constrained"));
    };
    expect(await debugLines({})).to.deep.equal([]);
    const [metadata, ...others] = await debugLines({ constrained_decoding_debug: true });
    expect(metadata).to.match(/metadata: forced {"bpm":123,"duration":10}, wrote "<think>\\nbpm: 123\\n/);
    expect(others).to.deep.equal([]);
    const [sheet] = await debugLines({ constrained_decoding_debug: true, sample_query: "a polka" });
    expect(sheet).to.match(/text: forced {"bpm":123,"duration":10}, wrote "<think>\\nbpm: 123\\n/);
    const free = { constrained_decoding_debug: true, constrained_decoding: false };
    expect((await debugLines(free))[0]).to.match(/metadata: unconstrained, wrote "/);
  });

  it("are planned in codes when they think: of the asked length, alike for alike seeds", async () => {
    const wav = { ...seeded, thinking: true, audio_format: "wav" };
    const one = await client.makeOne(wav);
    const two = await client.makeOne(wav);
    const plain = await client.makeOne({ ...wav, thinking: false });
    expect(one.metas).to.include({ duration: 10 });
    const bytes = await Promise.all([one, two, plain].map((record) => client.download(record)));
    expect((bytes[0] as Buffer).equals(bytes[1] as Buffer)).to.equal(true);
    expect((bytes[0] as Buffer).equals(bytes[2] as Buffer)).to.equal(false);
  });

  it("think for every item of a batch", async () => {
    const records = await client.make({ ...seeded, thinking: true, batch_size: 2, seed: "1,2" });
    expect(records).to.have.length(2);
    const bytes = await Promise.all(records.map((record) => client.download(record)));
    expect((bytes[0] as Buffer).equals(bytes[1] as Buffer)).to.equal(false);
  });

  it("take the client's own codes when it asks for that", async () => {
    const codes = Array.from({ length: 75 }, (_, i) => i % 100);
    const record = await client.makeOne({
      ...seeded,
      audio_code_string: codes.join(","),
      use_audio_codes: true,
    });
    expect(record.metas).to.include({ duration: 15 });
    const ignored = await client.makeOne({ ...seeded, audio_code_string: codes.join(",") });
    expect(ignored.metas).to.include({ duration: 10 });
    expect(ignored.warnings.join()).to.include("audio_code_string");
  });

  it("are written from nothing in sample mode, within what the client set", async () => {
    const record = await client.makeOne({
      ...seeded,
      prompt: "",
      sample_mode: true,
      bpm: 99,
      key_scale: "A minor",
    });
    expect(record.prompt).to.not.equal("");
    expect(record.lyrics).to.not.equal("");
    expect(record.metas).to.include({ bpm: 99, keyscale: "A minor", duration: 10, prompt: "" });
  });

  it("follow a wish", async () => {
    const record = await client.makeOne({ ...seeded, prompt: "", sample_query: "an instrumental polka" });
    expect(record.prompt).to.not.equal("");
    expect(record.lm_model).to.equal(languageModel);
  });

  it("are reworded by use_format, and still report the client's words", async () => {
    const lyrics = "[Verse]\nla la la";
    const record = await client.makeOne({ ...seeded, prompt: "polka", lyrics, use_format: true });
    expect(record.metas).to.include({ prompt: "polka", lyrics });
    expect(record.warnings).to.deep.equal([]);
  });

  it("name a language model that is not installed in a warning", async () => {
    const record = await client.makeOne({ ...seeded, thinking: true, lm_model_path: "acestep-5Hz-lm-4B" });
    expect(record.lm_model).to.equal(languageModel);
    expect(record.warnings.join()).to.include("acestep-5Hz-lm-4B");
  });

  it("share the machine with a second worker", async () => {
    const two = await startLiveServer(temporaryDirectory(), { SVC_QUEUE_WORKERS: "2" });
    const ids = await Promise.all(
      [1, 2, 3].map((seed) => two.client.submit({ ...seeded, seed, thinking: seed > 1 })),
    );
    for (const id of ids) expect((await two.client.finished(id)).item.status).to.equal(1);
    await two.close();
  });
});

describe("POST /format_input", () => {
  let server: LiveServer;

  before(async () => {
    server = await startLiveServer(temporaryDirectory());
  });

  after(() => server.close());

  const fields = { prompt: "polka", lyrics: "[Verse]\nla la la" };
  const wishes = { bpm: 90, key: "C major", time_signature: "3", duration: 45, language: "de" };

  for (const [how, param_obj] of [
    ["an object", wishes],
    ["text", JSON.stringify(wishes)],
  ] as const) {
    it(`keeps what param_obj sets, given as ${how}`, async () => {
      const { status, body } = await server.client.post("/format_input", { ...fields, param_obj });
      expect(status, body.detail).to.equal(200);
      expect(body.data).to.include({
        bpm: 90,
        key_scale: "C major",
        time_signature: "3",
        duration: 45,
        vocal_language: "de",
      });
      expect(body.data.caption).to.be.a("string").and.not.equal("");
      expect(body.data.lyrics).to.not.match(/^\[?inst(rumental)?\]?$/i);
    });
  }

  it("fills everything in from nothing", async () => {
    const { status, body } = await server.client.post("/format_input", {});
    expect(status).to.equal(200);
    expect(body.data).to.have.all.keys(
      "caption",
      "lyrics",
      "bpm",
      "key_scale",
      "time_signature",
      "duration",
      "vocal_language",
    );
    expect(body.data.bpm).to.be.within(30, 300);
  });

  it("answers while songs wait and render", async () => {
    const id = await server.client.submit({ ...shortSong, audio_duration: 600, inference_steps: 20 });
    const { status } = await server.client.post("/format_input", fields);
    expect(status).to.equal(200);
    expect((await server.client.query(id)).item.status).to.equal(0);
    await server.client.post("/cancel_task", { task_id: id });
  });

  it("answers the next client after one has hung up", async () => {
    const hangUp = new AbortController();
    const request = fetch(`${server.url}/format_input`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(fields),
      signal: hangUp.signal,
    });
    hangUp.abort();
    expect(await request.catch((error: Error) => error.name)).to.equal("AbortError");
    expect((await server.client.post("/format_input", fields)).status).to.equal(200);
  });

  it("lets a song pass that came after many texts, and refuses more texts than may wait", async () => {
    const client = new AbortController();
    let answered = 0;
    const ask = async (): Promise<number | null> => {
      const options = { method: "POST", headers: { "Content-Type": "application/json" } };
      const body = JSON.stringify(fields);
      const sent = fetch(`${server.url}/format_input`, { ...options, body, signal: client.signal });
      return sent.then(
        ({ status }) => {
          if (status === 200) answered++;
          return status;
        },
        () => null,
      );
    };
    const asked = Array.from({ length: 80 }, ask);
    expect(
      await Promise.any(asked.map(async (status) => (await status) === 429 || Promise.reject())),
    ).to.equal(true);
    await server.client.makeOne({ ...shortSong, thinking: true });
    // One for each of the song's own calls of the language model, and those that were written while it rendered.
    expect(answered).to.be.lessThan(65);
    client.abort();
    const refused = (await Promise.all(asked)).filter((status) => status === 429);
    expect(refused.length).to.be.within(1, 80 - 1 - 64);
    expect((await server.client.post("/format_input", fields)).status).to.equal(200);
  });

  it("refuses a param_obj that is no object", async () => {
    expect((await server.client.post("/format_input", { param_obj: "[1]" })).status).to.equal(400);
  });
});
