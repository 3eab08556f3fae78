import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { peakOf } from "../../src/music/audio/decode.js";
import { createLogger } from "../../src/system/log.js";
import { AceClient, formOf, type Part, partsOf } from "../music/acestep-cpp/ace-client.js";
import { samplesOf, writeSilence } from "../music/audio/recordings.js";
import { serverForAll } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

/** Bytes in a frame of carillon-nano's latents. */
const FRAME_BYTES = 400;
/** A song of two seconds: codes may be shorter than the minimum of duration. An edit ignores the codes. */
const short = {
  ...{ caption: "a short song", lyrics: "[Instrumental]", inference_steps: 1 },
  audio_codes: "1,2,3,4,5,6,7,8,9,10",
};
const FRAMES = 50;

describe("jobs of acestep.cpp's clients", () => {
  const server = serverForAll();
  const ace = new AceClient(server);

  it("a song is a task; its result holds audio and latents, and can be fetched again", async () => {
    const id = await ace.submit("/synth", { ...short, seed: 3, output_format: "wav16" });
    expect(await ace.ended(id)).to.equal("done");
    const result = await ace.get(`/job?id=${id}&result=1`);
    expect(Number(result.headers.get("content-length"))).to.equal(result.body.length);
    const parts = partsOf(result);
    expect(parts.map(({ type }) => type)).to.deep.equal(["audio/wav", "application/octet-stream"]);
    const [audio, latents] = parts.map(({ bytes }) => bytes) as [Buffer, Buffer];
    expect(audio.subarray(0, 4).toString()).to.equal("RIFF");
    expect(latents.length).to.equal(FRAMES * FRAME_BYTES);
    const values = new Float32Array(
      latents.buffer.slice(latents.byteOffset, latents.byteOffset + latents.length),
    );
    expect(values.every(Number.isFinite)).to.equal(true);
    expect((await ace.get(`/job?id=${id}&result=1`)).body.equals(result.body)).to.equal(true);

    const task = (await server.client.get(`/v1/tasks/${id}`)).body.data;
    expect(task.state).to.equal("succeeded");
    expect(task.warnings.join()).to.not.include("unknown fields");
    expect(task.songs).to.have.length(1);
  });

  it("an unknown job, no id, an unknown action and a result that is not ready are refused", async () => {
    const refusals: [method: string, path: string, status: number, error: string][] = [
      ["GET", "/job?id=none", 404, "Job not found"],
      ["GET", "/job", 400, "id is missing: send the id of a job"],
      ["POST", "/job?id=none&cancel=1", 404, "Job not found"],
      ["POST", "/job", 400, "id is missing: send the id of a job"],
    ];
    for (const [method, path, status, error] of refusals) {
      const answer = await ace.send(method, path);
      expect([answer.status, answer.body]).to.deep.equal([status, { error }]);
    }
    const id = await ace.submit("/synth", {
      ...short,
      audio_codes: "",
      duration: 240,
      inference_steps: 20,
      synth_batch_size: 9,
    });
    expect((await ace.get(`/job?id=${id}`)).body).to.deep.equal({ status: "running" });
    const result = await ace.get(`/job?id=${id}&result=1`);
    expect([result.status, result.body]).to.deep.equal([404, { error: "Result not ready" }]);
    expect((await ace.send("POST", `/job?id=${id}`)).status).to.equal(400);
    expect((await ace.send("POST", `/job?id=${id}&cancel=1`)).body).to.deep.equal({ status: "cancelled" });
    expect(await ace.ended(id)).to.equal("cancelled");
    expect((await ace.get(`/job?id=${id}&result=1`)).status).to.equal(404);
  });

  it("a job that has ended keeps its status when it is cancelled", async () => {
    const id = await ace.submit("/synth", short);
    await ace.ended(id);
    expect((await ace.send("POST", `/job?id=${id}&cancel=1`)).body).to.deep.equal({ status: "done" });
  });

  it("bad requests are refused in the shape of acestep.cpp, with the name of the field", async () => {
    const refusals: [body: unknown, status: number, error: string][] = [
      ["{", 400, "Malformed JSON payload"],
      ["[]", 400, "the list of requests is empty"],
      [[1], 400, "element 0 of the list must be a request object"],
      [{}, 400, "caption is required"],
      ["", 400, "request is missing: send it as JSON, in a form as the field request"],
      [formOf({ caption: "a waltz" }), 400, "request is missing"],
      [{ ...short, output_format: "ogg" }, 400, "output_format must be one of mp3, wav16"],
      [{ ...short, task_type: "karaoke" }, 400, "task_type must be one of"],
      [{ ...short, task_type: "cover" }, 400, "send it as audio or src_latents"],
      [{ ...short, dcw_scaler: 0.1, dcw_mode: "medium" }, 400, "dcw_mode must be one of"],
      [{ ...short, custom_timesteps: "0.1,0.9,0" }, 400, "custom_timesteps must be"],
      [
        { ...short, adapter: "none" },
        400,
        'adapter "none" is neither in SVC_TRAINING_ROOT nor in SVC_ADAPTERS',
      ],
      [formOf({ request: short, src_latents: Buffer.alloc(100) }), 400, "a multiple of 400 bytes, got 100"],
      [
        formOf({ request: short, src_latents: Buffer.alloc(15_001 * FRAME_BYTES) }),
        413,
        "the maximum is 15000",
      ],
      [
        formOf({ request: { ...short, task_type: "cover" }, audio: Buffer.from("no audio") }),
        400,
        "no decodable audio",
      ],
    ];
    for (const [body, status, error] of refusals) {
      const answer = await ace.send("POST", "/synth", body);
      expect(answer.status, `${JSON.stringify(body)} ${JSON.stringify(answer.body)}`).to.equal(status);
      expect(Object.keys(answer.body)).to.deep.equal(["error"]);
      expect(answer.body.error).to.include(error);
    }
  });

  it("JSON may have any Content-Type", async () => {
    for (const type of ["text/plain;charset=UTF-8", "application/octet-stream"]) {
      const headers = { "Content-Type": type };
      const answer = await fetch(`${server.url}/synth`, {
        method: "POST",
        headers,
        body: JSON.stringify(short),
      });
      expect(answer.status, type).to.equal(200);
    }
  });

  it("a recording that is too large is refused @slow", async () => {
    const audio = new Blob(Array(257).fill(new Uint8Array(2 ** 20)));
    const { status, body } = await ace.send("POST", "/vae", formOf({ audio }));
    expect([status, body.error]).to.deep.equal([413, "audio is larger than the limit of 268435456 bytes"]);
  });

  it("recordings of more than ten minutes are refused @slow", async () => {
    const audio = readFileSync(writeSilence(join(temporaryDirectory(), "long.flac"), 601));
    for (const [path, form] of [
      ["/vae", formOf({ audio })],
      ["/synth", formOf({ request: short, ref_audio: audio })],
    ] as const) {
      const { status, body } = await ace.send("POST", path, form);
      expect(status, body.error).to.equal(413);
      expect(body.error).to.match(/^(ref_)?audio .*600/);
    }
  });

  it("requests of a list are one batch, each with its own words, codes and seeds", async () => {
    const requests = [
      { ...short, caption: "first", bpm: 90, synth_batch_size: 2, seed: 5, output_format: "wav16" },
      { ...short, caption: "second", lyrics: "", audio_codes: "1,2,3,4,5", seed: 9 },
    ];
    const id = await ace.submit("/synth", requests);
    const parts = partsOf(await ace.resultOf(id));
    expect(parts.map(({ type }) => type)).to.deep.equal(
      Array(3).fill(["audio/wav", "application/octet-stream"]).flat(),
    );
    expect(parts.map(({ bytes }) => bytes.length / FRAME_BYTES).filter((_, i) => i % 2 === 1)).to.deep.equal([
      FRAMES,
      FRAMES,
      FRAMES / 2,
    ]);
    const task = (await server.client.get(`/v1/tasks/${id}`)).body.data;
    // biome-ignore lint/suspicious/noExplicitAny: rows of the task list
    const facts = task.songs.map(({ seed, metas, vocal_language, caption }: any) => [
      ...[String(seed), caption, metas.bpm, vocal_language],
    ]);
    expect(facts).to.deep.equal([
      ["5", "first", 90, "unknown"],
      ["6", "first", 90, "unknown"],
      ["9", "second", facts[2][2], "unknown"],
    ]);
    const alone = await ace.parts("/synth", { ...requests[0], seed: 6, synth_batch_size: 1 });
    expect(alone[0]?.bytes.equals(parts[2]?.bytes as Buffer)).to.equal(true);
  });

  it("nine songs of one request are a batch", async () => {
    const parts = await ace.parts("/synth", { ...short, synth_batch_size: 12, output_format: "wav16" });
    expect(parts).to.have.length(18);
  });

  it("audio is encoded and decoded without rendering; latents can be reused as source", async () => {
    const [audio, latents] = (await ace.parts("/synth", { ...short, seed: 1, output_format: "wav16" })) as [
      Part,
      Part,
    ];
    const encoded = await ace.run("/vae", formOf({ audio: audio.bytes }));
    expect(encoded.headers.get("content-type")).to.equal("application/octet-stream");
    expect(encoded.body.length).to.equal(latents.bytes.length);
    const decoded = await ace.run(
      "/vae",
      formOf({ src_latents: latents.bytes, request: { output_format: "wav16" } }),
    );
    expect(decoded.headers.get("content-type")).to.equal("audio/wav");
    expect(decoded.body.length).to.be.within(audio.bytes.length - 300, audio.bytes.length + 300);
    const samples = (bytes: Buffer) =>
      new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + 380_044));
    const [one, other] = [samples(audio.bytes), samples(decoded.body)];
    expect(one.every((sample, index) => Math.abs(sample - (other[index] as number)) <= 2)).to.equal(true);
    const cover = { ...short, task_type: "cover-nofsq", output_format: "wav16" };
    const [, ofCover] = await ace.parts("/synth", formOf({ request: cover, src_latents: latents.bytes }));
    expect(ofCover?.bytes.length).to.equal(latents.bytes.length);
    for (const body of [formOf({}), formOf({ audio: audio.bytes, src_latents: latents.bytes })]) {
      const { status, body: answer } = await ace.send("POST", "/vae", body);
      expect([status, answer.error]).to.deep.equal([
        400,
        "send either audio, to encode it, or src_latents, to decode them, in a form",
      ]);
    }
  });

  it("wav32 has the level of the decoder", async () => {
    const request = { ...short, seed: 1, output_format: "wav32" };
    const [audio, latents] = (await ace.parts("/synth", request)) as [Part, Part];
    const decoded = await ace.run("/vae", formOf({ src_latents: latents.bytes, request }));
    const [song, again] = [samplesOf(audio.bytes), samplesOf(decoded.body)];
    expect(song.every((sample, at) => Math.abs(sample - (again[at] as number)) < 1e-5)).to.equal(true);
    expect(peakOf(song)).to.not.be.closeTo(10 ** (-1 / 20), 1e-3);
  });

  it("a window before the source extends the song; latents win over audio", async () => {
    const [audio, latents] = (await ace.parts("/synth", { ...short, output_format: "wav16" })) as [
      Part,
      Part,
    ];
    const request = { ...short, task_type: "repaint", repainting_start: -2, output_format: "wav16" };
    const form = () => formOf({ request, audio: Buffer.from("no audio"), src_latents: latents.bytes });
    const [, extended] = await ace.parts("/synth", form());
    expect(extended?.bytes.length).to.equal(2 * FRAMES * FRAME_BYTES);
    expect(extended?.bytes.subarray(FRAMES * FRAME_BYTES).equals(latents.bytes)).to.equal(true);
    const [, ofAudio] = await ace.parts("/synth", formOf({ request, audio: audio.bytes }));
    expect(ofAudio?.bytes.length).to.equal(2 * FRAMES * FRAME_BYTES);
  });

  it("GET /health has the status at the top level", async () => {
    expect((await server.client.get("/health")).body).to.include({ status: "ok", code: 200 });
  });

  it("GET /props lists models, defaults and presets; turbo models say so in their names", async () => {
    const { body } = await ace.get("/props");
    expect(body.models).to.deep.equal({
      lm: ["carillon-nano/lm"],
      embedding: ["text_encoder"],
      dit: ["carillon-nano-turbo"],
      vae: ["vae"],
    });
    expect(body).to.deep.include({ adapters: [], cli: { max_batch: 9 } });
    expect(body.default).to.include({ caption: "", seed: -1, task_type: "text2music", mp3_bitrate: 128 });
    expect(Object.keys(body.default)).to.have.length(44);
    expect(body.presets).to.deep.equal({
      turbo: { inference_steps: 8, guidance_scale: 1, shift: 3 },
      sft: { inference_steps: 50, guidance_scale: 1, shift: 1 },
    });
    for (const synth_model of ["carillon-nano-turbo", "carillon-nano", "carillon-nano-turbo-Q8_0.gguf"]) {
      const id = await ace.submit("/synth", { ...short, synth_model });
      await ace.ended(id);
      const { warnings } = (await server.client.get(`/v1/tasks/${id}`)).body.data;
      expect(warnings.join()).to.not.include("is not loaded");
    }
  });

  it("GET /logs sends recent lines and new ones", async () => {
    const log = createLogger("info");
    log.info("an earlier line");
    const gone = new AbortController();
    const response = await fetch(`${server.url}/logs`, { signal: gone.signal });
    expect(response.headers.get("content-type")).to.match(/^text\/event-stream/);
    expect(response.headers.get("cache-control")).to.include("no-cache");
    expect(response.headers.get("x-accel-buffering")).to.equal("no");
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const until = async (words: string) => {
      while (!text.includes(words)) text += Buffer.from((await reader.read()).value ?? []).toString();
    };
    await until("an earlier line");
    log.info("a new line");
    await until("a new line");
    gone.abort();
    expect(text).to.match(/^data: \{.*"msg":"an earlier line"/m);
  });
});

describe("the language model of acestep.cpp's clients", () => {
  const server = serverForAll();
  const ace = new AceClient(server);
  const words = { caption: "slow bossa nova", lyrics: "[Verse]\nRain again", duration: 10 };

  it("fills empty fields, and never changes given ones", async () => {
    const sent = { ...words, bpm: 88, keyscale: "A minor", lm_seed: 7, seed: 3, inference_steps: 4 };
    const [request, ...others] = (await ace.run("/lm", sent)).body;
    expect(others).to.deep.equal([]);
    expect(request).to.include(sent);
    expect(request.audio_codes.split(",")).to.have.length(50);
    expect(request.timesignature).to.match(/^[2346]$/);
    expect(request).to.include({ solver: "euler", lm_mode: "generate", task_type: "text2music" });
    expect(request).to.not.have.any.keys("lm_batch_size", "lm_temperature", "synth_batch_size", "peak_clip");
    const again = (await ace.run("/lm", sent)).body;
    expect(again).to.deep.equal([request]);
    const parts = await ace.parts("/synth", { ...request, output_format: "wav16" });
    expect(parts[1]?.bytes.length).to.equal(250 * FRAME_BYTES);
  });

  it("plans lm_batch_size songs with lm_seed + i and seed + i", async () => {
    const requests = (await ace.run("/lm", { ...words, lm_batch_size: 9, lm_seed: 5, seed: 2 })).body;
    expect(requests).to.have.length(9);
    // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server answers
    expect(requests.map(({ seed, lm_seed }: any) => [seed, lm_seed])).to.deep.equal(
      Array.from({ length: 9 }, (_, index) => [2 + index, 5 + index]),
    );
    expect(new Set(requests.map(({ audio_codes }: { audio_codes: string }) => audio_codes)).size).to.equal(9);
    const [alone] = (await ace.run("/lm", { ...words, lm_seed: 6, seed: 3 })).body;
    expect(alone).to.deep.equal(requests[1]);
  });

  it("audio codes leave nothing to do; [Instrumental] counts as given", async () => {
    const [request] = (await ace.run("/lm", { caption: "a waltz", audio_codes: "1,2,3" })).body;
    expect(request).to.include({ caption: "a waltz", audio_codes: "1,2,3" });
    expect(request).to.not.have.any.keys("lyrics", "bpm", "duration", "keyscale");
    const [other] = (await ace.run("/lm", { ...words, lyrics: "[Instrumental]" })).body;
    expect(other).to.include({ lyrics: "[Instrumental]", vocal_language: "unknown" });
    const [unsung] = (await ace.run("/lm", { ...words, vocal_language: "unknown" })).body;
    expect(unsung).to.include({ lyrics: words.lyrics, vocal_language: "unknown" });
    const [empty] = (await ace.run("/lm", { ...words, lyrics: "" })).body;
    expect(empty).to.include({ lyrics: "[Instrumental]", vocal_language: "unknown" });
  });

  it("a model that writes no text refuses inspire and format with the reason", async () => {
    for (const lm_mode of ["inspire", "format"]) {
      const { status, body } = await ace.send("POST", "/lm", { ...words, lm_mode });
      expect([status, Object.keys(body)]).to.deep.equal([501, ["error"]]);
      expect(body.error).to.include(`lm_mode ${lm_mode} needs a language model that writes captions`);
    }
    for (const body of [{ lyrics: "la" }, { ...words, lm_mode: "sing" }]) {
      expect((await ace.send("POST", "/lm", body)).status).to.equal(400);
    }
  });

  it("describes a recording or its latents, and returns the latents", async () => {
    const [audio, latents] = (await ace.parts("/synth", { ...short, output_format: "wav16" })) as [
      Part,
      Part,
    ];
    const [json, encoded] = (await ace.parts("/understand", formOf({ audio: audio.bytes }))) as [Part, Part];
    expect([json.type, encoded.type]).to.deep.equal(["application/json", "application/octet-stream"]);
    const [request, ...others] = JSON.parse(json.bytes.toString());
    expect(others).to.deep.equal([]);
    expect(request).to.include({ duration: FRAMES / 25, seed: request.seed, task_type: "text2music" });
    expect(request.audio_codes.split(",")).to.have.length(10);
    expect(encoded.bytes.length).to.equal(latents.bytes.length);
    const form = formOf({ src_latents: latents.bytes, request: { lm_seed: 4 } });
    const [ofLatents, same] = (await ace.parts("/understand", form)) as [Part, Part];
    // Without a request, the language model is nearly greedy; with one, unset fields have their defaults.
    const { tasks } = (await server.client.get("/v1/tasks?limit=2")).body.data;
    const temperatures = tasks.map(
      ({ parameters }: { parameters: { lm_temperature: number } }) => parameters.lm_temperature,
    );
    expect(temperatures).to.deep.equal([0.85, 0.3]);
    expect(same.bytes.equals(latents.bytes)).to.equal(true);
    expect(JSON.parse(ofLatents.bytes.toString())[0].lm_seed).to.equal(4);
    const refused = await ace.send("POST", "/understand", formOf({ request: {} }));
    expect([refused.status, refused.body.error]).to.deep.equal([
      400,
      "send the recording as audio or src_latents in a form",
    ]);
  });
});

describe("keys of acestep.cpp's clients", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const open = new AceClient(server);

  it("every endpoint requires the key", async () => {
    const requests: [method: string, path: string][] = [
      ["POST", "/synth"],
      ["POST", "/lm"],
      ["POST", "/understand"],
      ["POST", "/vae"],
      ["GET", "/job?id=x"],
      ["POST", "/job?id=x&cancel=1"],
      ["GET", "/props"],
      ["GET", "/logs"],
    ];
    for (const [method, path] of requests) {
      const answer = await open.send(method, path, method === "POST" ? {} : undefined);
      expect(answer.status, path).to.equal(401);
      expect(Object.keys(answer.body)).to.deep.equal(["error"]);
      const wrong = await open.send(method, `${path}${path.includes("?") ? "&" : "?"}ai_token=k2`);
      expect(wrong.status, path).to.equal(401);
    }
  });

  it("the key may be in a header, or in the query of the base address", async () => {
    const bases = [`${server.url}/?ai_token=k1`, `${server.url}?ai_token=k1`];
    for (const url of bases) expect((await new AceClient({ url }).get("/props")).status).to.equal(200);
    expect((await open.get("/props?ai_token=k1")).status).to.equal(200);
    expect((await new AceClient(server, { "X-API-Key": "k1" }).get("/props")).status).to.equal(200);
    const client = new AceClient({ url: `${server.url}/?ai_token=k1` });
    const parts = await client.parts("/synth", formOf({ request: short }));
    expect(parts).to.have.length(2);
  });
});
