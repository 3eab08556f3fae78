import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import {
  type Client,
  type LiveServer,
  longSong,
  type SongRecord,
  serverForAll,
  shortSong,
  startLiveServer,
} from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const languageModel = "carillon-nano/lm";

describe("making songs without a loaded language model", () => {
  const server = serverForAll({ SVC_INIT_LLM: "false" });
  const { client } = server;

  it("a song does not load the language model for options that can do without it", async () => {
    const record = await client.makeOne({ ...shortSong, use_cot_caption: true, use_cot_language: true });
    expect(record).to.include({ lm_model: "", caption: shortSong.prompt });
    expect(record.metas).to.include({ keyscale: "", timesignature: "" });
    expect(record.metas.bpm).to.be.within(50, 200).and.satisfy(Number.isInteger);
    expect(record.generation_info).to.include(`BPM: ${record.metas.bpm} (measured)`);
    expect((await client.get("/health")).body.data.llm_initialized).to.equal(false);
  });

  it("a song with thinking=true loads the language model", async () => {
    const record = await client.makeOne({ ...shortSong, thinking: true });
    expect(record).to.include({ lm_model: languageModel });
    expect((await client.get("/health")).body.data.loaded_lm_model).to.equal(languageModel);
  });
});

describe("planning of songs by the language model", () => {
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

  it("the language model chooses metadata that the client did not set", async () => {
    const record = await client.makeOne({ ...seeded, bpm: 123 });
    expect(record.lm_model).to.equal(languageModel);
    expect(record.metas).to.include({ bpm: 123, duration: 10 });
    expect(record.metas.keyscale).to.match(/^[A-G].* (major|minor)$/);
    expect(record.metas.timesignature).to.be.oneOf(["2", "3", "4", "6"]);
    expect(record.prompt).to.equal(shortSong.prompt);
  });

  it("constrained_decoding_debug logs the constraints and the model's text", async () => {
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
    expect(sheet).to.include(
      'metadata: forced {"bpm":123,"duration":10,"timesignature":"2"}, wrote "<think>',
    );
    const free = { constrained_decoding_debug: true, constrained_decoding: false };
    expect((await debugLines(free))[0]).to.match(/metadata: unconstrained, wrote "/);
  });

  it("songs with thinking=true have the requested length, and are equal for equal seeds", async () => {
    const wav = { ...seeded, thinking: true, audio_format: "wav" };
    const one = await client.makeOne(wav);
    const two = await client.makeOne(wav);
    const plain = await client.makeOne({ ...wav, thinking: false });
    expect(one.metas).to.include({ duration: 10 });
    const bytes = await Promise.all([one, two, plain].map((record) => client.download(record)));
    expect((bytes[0] as Buffer).equals(bytes[1] as Buffer)).to.equal(true);
    expect((bytes[0] as Buffer).equals(bytes[2] as Buffer)).to.equal(false);
  });

  it("the audio codes in a song's record make the same song again without the language model", async () => {
    const whole = { ...seeded, thinking: true, audio_format: "wav", batch_size: 2, seed: "1,2" };
    const id = await client.submit(whole);
    const { records } = await client.finished(id);
    const { songs } = (await client.get(`/v1/tasks/${id}`)).body.data;
    const codes: number[][] = songs.map((song: { audio_codes: number[] }) => song.audio_codes);
    expect(codes.map(({ length }) => length)).to.deep.equal([50, 50]);
    expect(codes[0]).not.to.deep.equal(codes[1]);
    const { tasks } = (await client.get("/v1/tasks?limit=1")).body.data;
    expect(tasks[0]).to.include({ task_id: id });
    expect(tasks[0].songs[0]).not.to.have.property("audio_codes");

    const song = songs[1];
    const again = await client.makeOne({
      ...{ ...whole, prompt: song.caption, lyrics: song.lyrics, thinking: false, seed: song.seed },
      ...{ bpm: song.metas.bpm, key_scale: song.metas.keyscale, time_signature: song.metas.timesignature },
      ...{ vocal_language: song.vocal_language, audio_code_string: codes[1], use_audio_codes: true },
    });
    const bytes = await Promise.all(
      [records[1] as SongRecord, again].map((record) => client.download(record)),
    );
    expect((bytes[0] as Buffer).equals(bytes[1] as Buffer)).to.equal(true);
  });

  it("songs planned in a batch equal songs planned one by one with allow_lm_batch=false", async () => {
    const two = { ...seeded, thinking: true, batch_size: 2, seed: "1,2" };
    const download = async (parameters: object) =>
      Promise.all((await client.make({ ...two, ...parameters })).map((record) => client.download(record)));
    const together = await download({});
    const alone = await download({ allow_lm_batch: false });
    expect(together).to.have.length(2);
    expect((together[0] as Buffer).equals(together[1] as Buffer)).to.equal(false);
    expect(together.map((song) => song.toString("base64"))).to.deep.equal(
      alone.map((song) => song.toString("base64")),
    );
  });

  it("use_audio_codes makes the song from the client's audio codes", async () => {
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

  it("sample_mode writes caption and lyrics, and keeps the client's metadata", async () => {
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

  it("sample_query becomes the caption if the model does not write text", async () => {
    const lyrics = "[Verse]\nhigh on the hill the goats are dancing";
    const request = { ...seeded, prompt: "", sample_query: "a polka for goats", lyrics };
    const record = await client.makeOne(request);
    expect(record).to.include({ prompt: "a polka for goats", caption: "a polka for goats", lyrics });
    expect(record.lm_model).to.equal(languageModel);
    expect(record.metas.keyscale).to.match(/^[A-G].* (major|minor)$/);
    expect(record.warnings.join()).to.match(/sample_query: .*does not write text: the query is the caption/);
  });

  it("use_format keeps caption and lyrics if the model does not write text", async () => {
    const lyrics = "[Verse]\nla la la";
    const record = await client.makeOne({ ...seeded, prompt: "polka", lyrics, use_format: true });
    expect(record).to.include({ prompt: "polka", caption: "polka", lyrics });
    expect(record.metas).to.include({ prompt: "polka", lyrics });
    expect(record.metas.keyscale).to.not.equal("");
    expect(record.warnings.join()).to.match(/use_format: .*does not write text/);
  });

  it("a requested use_cot_caption causes a warning if the model does not write text", async () => {
    const asked = await client.makeOne({ ...seeded, use_cot_caption: true });
    expect(asked.caption).to.equal(shortSong.prompt);
    expect(asked.warnings.join()).to.match(
      /^use_cot_caption: .*does not write text: the caption is unchanged/,
    );
    const unasked = await client.makeOne(seeded);
    expect(unasked).to.include({ caption: shortSong.prompt });
    expect(unasked.warnings).to.deep.equal([]);
  });

  it("songs are sung in the requested language, else in the language of the lyrics", async () => {
    const lyrics = "[Verse]\nIch gehe heute durch den Regen\nund denke an dich";
    expect(await client.makeOne({ ...seeded, lyrics })).to.include({ vocal_language: "de" });
    const named = await client.makeOne({ ...seeded, lyrics, vocal_language: "nl" });
    expect(named).to.include({ vocal_language: "nl" });
    expect(await client.makeOne(seeded)).to.include({ vocal_language: "en" });
  });

  it("without constrained_decoding, a song fails if the model writes no metadata", async () => {
    const wild = { ...seeded, thinking: true, lm_temperature: 2, lm_top_p: 1 };
    const held = await client.makeOne(wild);
    expect(held.metas.timesignature).to.be.oneOf(["2", "3", "4", "6"]);
    const id = await client.submit({ ...wild, constrained_decoding: false });
    const { item, records } = await client.finished(id);
    if (item.status === 2) expect(item.error).to.include("wrote no metadata");
    else expect((records as SongRecord[])[0]?.metas).to.not.deep.equal(held.metas);
  });

  it("lyrics or a query too long for the language model are refused if the song needs the model", async () => {
    const tooLong = { ...seeded, lyrics: "na ".repeat(10_000) };
    const refusal = await client.post("/release_task", { ...tooLong, thinking: true });
    expect(refusal.status).to.equal(400);
    expect(refusal.body.detail).to.match(
      /^lyrics is too long for the language model carillon-nano\/lm: it takes \d+ of/,
    );
    const request = { ...seeded, sample_query: "☃".repeat(4_000) };
    expect((await client.post("/release_task", request)).body.detail).to.match(/^sample_query is too long/);
    const song = await client.makeOne(tooLong);
    expect(song.warnings.join()).to.match(/metadata were not planned: lyrics is too long/);
    expect(song.metas.duration).to.equal(10);
  });

  it("a request for a language model that is not installed causes a warning", async () => {
    const record = await client.makeOne({ ...seeded, thinking: true, lm_model_path: "acestep-5Hz-lm-4B" });
    expect(record.lm_model).to.equal(languageModel);
    expect(record.warnings.join()).to.include("acestep-5Hz-lm-4B");
  });

  it("two workers can make songs with the language model at once", async () => {
    const two = await startLiveServer(temporaryDirectory(), { SVC_QUEUE_WORKERS: "2" });
    const ids = await Promise.all(
      [1, 2, 3].map((seed) => two.client.submit({ ...seeded, seed, thinking: seed > 1 })),
    );
    for (const id of ids) expect((await two.client.finished(id)).item.status).to.equal(1);
    await two.close();
  });
});

describe("POST /format_input", () => {
  const server = serverForAll();

  const fields = { prompt: "polka", lyrics: "[Verse]\nla la la" };
  const metadata = { bpm: 90, key: "C major", time_signature: "3", duration: 45, language: "de" };

  for (const [how, param_obj] of [
    ["an object", metadata],
    ["text", JSON.stringify(metadata)],
  ] as const) {
    it(`/format_input keeps the fields of a param_obj that is sent as ${how}`, async () => {
      const { status, body } = await server.client.post("/format_input", { ...fields, param_obj });
      expect(status, body.detail).to.equal(200);
      expect(body.data).to.include({
        bpm: 90,
        key_scale: "C major",
        time_signature: "3",
        duration: 45,
        vocal_language: "de",
      });
      expect(body.data).to.include({ caption: "polka", lyrics: fields.lyrics });
      expect(body.data.warnings.join()).to.include("does not write text");
    });
  }

  it("/format_input fills all fields of an empty request", async () => {
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
      "warnings",
    );
    expect(body.data.bpm).to.be.within(30, 300);
  });

  it("/format_input answers while songs are queued and rendered", async () => {
    const id = await server.client.submit(longSong);
    const { status } = await server.client.post("/format_input", fields);
    expect(status).to.equal(200);
    expect((await server.client.query(id)).item.status).to.equal(0);
    await server.client.post("/cancel_task", { task_id: id });
  });

  it("/format_input answers the next client after a client has disconnected", async () => {
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

  it("a song uses the model before queued /format_input requests; too many of them are answered 429", async () => {
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
    const song = await server.client.submit({ ...shortSong, thinking: true });
    const answeredBefore: number[] = [];
    await server.client.finished(song, ({ event, data }) => {
      if (event === "stage" && /music|inputs|Decoding/.test(data.stage)) answeredBefore.push(answered);
    });
    // The song used the language model while requests that had been queued before it still waited.
    expect(answeredBefore[0]).to.be.lessThan(64);
    client.abort();
    const refused = (await Promise.all(asked)).filter((status) => status === 429);
    expect(refused.length).to.be.within(1, 80 - 1 - 64);
    expect((await server.client.post("/format_input", fields)).status).to.equal(200);
  });

  it("/format_input returns the language of the lyrics, and names a field that is too long", async () => {
    const lyrics = "[Couplet]\nSous le ciel de Paris s'envole une chanson";
    expect((await server.client.post("/format_input", { lyrics })).body.data.vocal_language).to.equal("fr");
    const refusal = await server.client.post("/format_input", { lyrics: "la ".repeat(10_000) });
    expect(refusal.status).to.equal(400);
    expect(refusal.body.detail).to.match(/^lyrics is too long/);
  });

  it("/format_input refuses a param_obj that is not an object", async () => {
    expect((await server.client.post("/format_input", { param_obj: "[1]" })).status).to.equal(400);
  });
});

describe("songs from an untrained language model", () => {
  let server: LiveServer;

  before(async () => {
    const checkpoints = temporaryDirectory();
    const writer = join(checkpoints, "acestep-5Hz-lm-writer");
    cpSync("models/carillon-nano/lm", writer, { recursive: true });
    const path = join(writer, "config.json");
    writeFileSync(path, readFileSync(path, "utf8").replace(/"writes_text": false/, '"writes_text": true'));
    const settings = { SVC_CHECKPOINTS: checkpoints, SVC_LM_MODEL_PATH: "acestep-5Hz-lm-writer" };
    server = await startLiveServer(temporaryDirectory(), { ...settings, SVC_INIT_LLM: "true" });
  });

  after(() => server.close());

  const lyrics = "[Verse]\nhello my friend\nthe night is young";

  it("an untrained language model does not replace lyrics with nonsense", async () => {
    for (const temperature of [0.2, 0.85, 1.5]) {
      const { status, body } = await server.client.post("/format_input", {
        prompt: "heavy metal",
        lyrics,
        temperature,
      });
      expect(status).to.equal(200);
      expect(body.data.lyrics).to.equal(lyrics);
      expect(body.data.warnings.join()).to.match(/the lyrics are unchanged/);
    }
    const song = await server.client.makeOne({ ...shortSong, lyrics, use_format: true });
    expect(song.lyrics).to.equal(lyrics);
    expect(song.warnings.join()).to.match(/use_format: the lyrics are unchanged/);
  });

  it("the song's record has the caption used for rendering", async () => {
    // At a high temperature the model does not copy the prompt.
    const hot = { use_cot_caption: true, lm_temperature: 2, lm_top_p: 1, use_random_seed: false, seed: 1 };
    const song = await server.client.makeOne({ ...shortSong, prompt: "a merry tune", ...hot });
    if (song.caption === "a merry tune") expect(song.warnings.join()).to.include("the caption is unchanged");
    else expect(song).to.include({ prompt: "a merry tune" });
  });
});
