import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { AceClient, formOf, type Part, partsOf } from "../music/acestep-cpp/ace-client.js";
import { serverForAll, startLiveServer } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

/** Names of weight files as clients store them in their requests, none of which is installed. */
const MODELS = { lm_model: "acestep-5Hz-lm-4B-Q8_0.gguf", synth_model: "acestep-v15-sft-Q8_0.gguf" };
/** Bytes in a frame of carillon-nano's latents. */
const FRAME_BYTES = 400;

/** A form as the page sends it: the request is a file. */
function pageForm(request: object, parts: Record<string, Uint8Array>): FormData {
  const form = formOf(parts);
  form.append("request", new Blob([JSON.stringify(request)], { type: "application/json" }), "request.json");
  return form;
}

describe("acestep.cpp's page, as a replay of its requests", () => {
  const server = serverForAll();
  const ace = new AceClient(server);
  /** What the form of the page holds before anything is filled in. */
  const blank = { caption: "dub techno with long chords", use_cot_caption: true, task_type: "text2music" };

  it("composes, renders the compositions, and makes a cover, a repaint and a stem of a card", async () => {
    const { body: props } = await ace.get("/props");
    const chosen = {
      lm_model: props.models.lm[0],
      synth_model: props.models.dit[0],
      vae: props.models.vae[0],
    };
    // Compose
    const form = { ...blank, ...chosen, lyrics: "[Instrumental]", vocal_language: "unknown", duration: 10 };
    const pending = (await ace.run("/lm", { ...form, audio_codes: "", lm_batch_size: 2 })).body;
    expect(pending).to.have.length(2);
    // Synthesize: the pending compositions with the settings of the form
    const reqs = pending.map((request: object) => ({
      ...{ ...request, ...chosen, seed: 11, synth_batch_size: 1, inference_steps: 2, output_format: "wav16" },
    }));
    const parts = await ace.parts("/synth", reqs);
    expect(parts.map(({ type }) => type)).to.deep.equal(
      Array(2).fill(["audio/wav", "application/octet-stream"]).flat(),
    );
    const [, card] = parts as [Part, Part];
    // Cover and repaint of a card with latents, and a reference
    const edit = {
      ...blank,
      ...chosen,
      inference_steps: 1,
      seed: 3,
      synth_batch_size: 1,
      output_format: "wav16",
    };
    const cover = { ...edit, task_type: "cover", audio_cover_strength: 0.5, output_format: "mp3" };
    const noAudio = Buffer.from("latents win");
    const latentsOnly = { src_latents: card.bytes, ref_latents: card.bytes };
    const sources = { ...latentsOnly, audio: noAudio, ref_audio: noAudio };
    const ofCover = await ace.parts("/synth", pageForm(cover, sources));
    expect(ofCover.map(({ type }) => type)).to.deep.equal(["audio/mpeg", "application/octet-stream"]);
    const repaint = { ...edit, task_type: "repaint", repainting_start: 2.5, repainting_end: 5.25 };
    const [, painted] = await ace.parts("/synth", pageForm(repaint, { src_latents: card.bytes }));
    expect(painted?.bytes.length).to.equal(card.bytes.length);
    const frames = (begin: number, end: number) =>
      [painted as Part, card].map(({ bytes }) =>
        bytes.subarray(begin * FRAME_BYTES, end * FRAME_BYTES).toString("latin1"),
      );
    for (const [before, after] of [frames(0, 62), frames(132, 250)]) expect(before).to.equal(after);
    const [fresh, old] = frames(63, 131);
    expect(fresh).to.not.equal(old);
    // Stems: each as long as the card, and different from the others
    const latentsOfStem = async (task_type: string, track: string) => {
      // Stems need no caption.
      const stem = { ...edit, caption: "", task_type, track, vae: chosen.vae };
      return (await ace.parts("/synth", pageForm(stem, { src_latents: card.bytes })))[1]?.bytes as Buffer;
    };
    const latents = [
      await latentsOfStem("lego", "drums"),
      await latentsOfStem("extract", "vocals"),
      await latentsOfStem("extract", "bass"),
      await latentsOfStem("complete", "drums | bass"),
    ];
    expect(latents.map(({ length }) => length)).to.deep.equal(Array(4).fill(card.bytes.length));
    expect(new Set(latents.map((bytes) => bytes.toString("latin1"))).size).to.equal(4);
    // Several variations with a timbre, and an extension of the front
    const variations = { ...edit, task_type: "cover-nofsq", synth_batch_size: 2 };
    expect(await ace.parts("/synth", pageForm(variations, sources))).to.have.length(4);
    const extension = { ...repaint, repainting_start: -3, repainting_end: undefined };
    const [, extended] = await ace.parts("/synth", pageForm(extension, { src_latents: card.bytes }));
    expect(extended?.bytes.length).to.equal(card.bytes.length + 75 * FRAME_BYTES);
  });

  it("computes the latents of an opened recording, scans it, and opens latents", async () => {
    const request = { ...blank, ...MODELS, duration: 10, inference_steps: 1, output_format: "wav16" };
    const [audio] = (await ace.parts("/synth", request)) as [Part];
    const { body: latents } = await ace.run("/vae", pageForm(blank, { audio: audio.bytes }));
    expect(latents.length).to.equal(250 * FRAME_BYTES);
    const opened = await ace.run("/vae", pageForm({ ...blank, peak_clip: 0 }, { src_latents: latents }));
    expect(opened.headers.get("content-type")).to.equal("audio/mpeg");
    const [json, same] = (await ace.parts("/understand", pageForm(MODELS, { src_latents: latents }))) as [
      Part,
      Part,
    ];
    expect(JSON.parse(json.bytes.toString())).to.have.length(1);
    expect(same.bytes.equals(latents)).to.equal(true);
  });

  it("names the reason if the language model writes no text", async () => {
    for (const lm_mode of ["inspire", "format"]) {
      const request = { ...blank, synth_model: "carillon-nano-turbo", lm_model: "carillon-nano/lm" };
      const { status, body } = await ace.send("POST", "/lm", { ...request, audio_codes: "", lm_mode });
      expect(`${status} ${body.error}`).to.equal(
        `501 lm_mode ${lm_mode} needs a language model that writes captions and lyrics, which carillon-nano/lm does not: install another, or use generate`,
      );
    }
  });

  it("cancels a composition and a song, while they wait or run", async () => {
    const long = { ...blank, duration: 240, inference_steps: 50, lm_batch_size: 9, audio_codes: "" };
    for (const path of ["/synth", "/lm"]) {
      const ids = [await ace.submit(path, long), await ace.submit(path, long)];
      for (const id of ids.toReversed()) {
        await ace.send("POST", `/job?id=${id}&cancel=1`);
        expect(await ace.ended(id)).to.equal("cancelled");
      }
    }
  });
});

describe("acestep.cpp's scripts, as replays of their requests", () => {
  const server = serverForAll();
  const ace = new AceClient(server);
  const sft = { ...MODELS, caption: "French house", lyrics: "[Verse]\nSous le soleil", vocal_language: "fr" };

  it("client.sh enriches a request of other models, and renders the first result", async () => {
    const facts = { bpm: 124, duration: 10, keyscale: "F# major", timesignature: "4" };
    const [first] = (
      await ace.run("/lm", { ...sft, ...facts, inference_steps: 2, guidance_scale: 1, shift: 1 })
    ).body;
    expect(first).to.include({ ...sft, ...facts, inference_steps: 2, guidance_scale: 1, shift: 1 });
    const parts = await ace.parts("/synth", first);
    expect(parts[0]?.type).to.equal("audio/mpeg");
  });

  it("client-batch.py, of the time before jobs, renders two variations as one batch", async () => {
    const script = new AceClient({ url: `${server.url}/?wait=1` });
    const request = { ...sft, lyrics: undefined, duration: 10, lm_batch_size: 2, inference_steps: 8 };
    const variations = (await script.send("POST", "/lm", request)).body;
    expect(variations).to.have.length(2);
    const songs = partsOf(await script.send("POST", "/synth", variations));
    expect(songs.map(({ type }) => type)).to.deep.equal(["audio/mpeg", "audio/mpeg"]);
  });

  it("client-understand.sh sends the whole answer of /understand as its next request", async () => {
    const [audio] = (await ace.parts("/synth", {
      caption: "a waltz",
      duration: 10,
      output_format: "wav16",
    })) as [Part];
    const described = await ace.run("/understand", formOf({ audio: audio.bytes }));
    expect(partsOf(described)).to.have.length(2);
    const form = formOf({ audio: audio.bytes });
    form.append("request", new Blob([described.body]), "server-understand.json");
    const parts = await ace.parts("/synth", form);
    expect(parts[1]?.bytes.length).to.equal(250 * FRAME_BYTES);
  });
});

describe("acestep.vst3's page, of the time before jobs, as a replay of its requests", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const form = {
    ...{ caption: "dub techno with long chords", duration: 10, seed: -1, use_cot_caption: true },
    ...{ lm_temperature: 0.85, lm_cfg_scale: 2 },
  };

  it("gets compositions and songs as answers", async () => {
    const page = new AceClient({ url: `${server.url}/?wait=1&ai_token=k1` });
    const { default: defaults, status } = (await page.get("/props")).body;
    expect(status).to.deep.equal({ lm: "ok", synth: "ok" });
    expect(defaults).to.include({ caption: "" });
    const enriched = (await page.send("POST", "/lm", { ...form, batch_size: 2 })).body;
    expect(enriched).to.have.length(2);
    const songs = await page.send("POST", "/synth?wav=1", enriched);
    expect(partsOf(songs).map(({ type }) => type)).to.deep.equal(["audio/wav", "audio/wav"]);
    const song = await page.send("POST", "/synth", enriched[0]);
    expect(song.headers.get("content-type")).to.equal("audio/mpeg");
    const { status: refused, body } = await page.send("POST", "/lm", { ...form, caption: "" });
    expect([refused, body]).to.deep.equal([400, { error: "caption is required" }]);
  });

  it("cancels a song whose client disconnects", async () => {
    const gone = new AbortController();
    const { signal } = gone;
    const headers = { "X-API-Key": "k1", "Content-Type": "application/json" };
    const body = JSON.stringify({ ...form, duration: 240, inference_steps: 50 });
    const answer = fetch(`${server.url}/synth?wait=1`, { method: "POST", headers, body, signal }).catch(
      (error: Error) => error.name,
    );
    const newest = async () => (await server.client.get("/v1/tasks?limit=1", headers)).body.data.tasks[0];
    while ((await newest()).state !== "running") await sleep(20);
    gone.abort();
    expect(await answer).to.equal("AbortError");
    while ((await newest()).end_time === null) await sleep(20);
    expect((await newest()).error).to.equal("Cancelled by user");
  });
});

describe("jobs of acestep.cpp's clients across a restart", () => {
  it("a job that waits, and a finished one, are there after a restart of the server", async () => {
    const directory = temporaryDirectory();
    const first = await startLiveServer(directory);
    const before = new AceClient(first);
    const request = { caption: "a waltz", duration: 10, inference_steps: 1, output_format: "wav16", seed: 1 };
    const done = await before.submit("/synth", request);
    const result = await before.resultOf(done);
    const waiting = [
      await before.submit("/synth", request),
      await before.submit("/lm", { ...request, lyrics: "la" }),
    ];
    await first.close();
    const second = await startLiveServer(directory);
    try {
      const after = new AceClient(second);
      expect((await after.get(`/job?id=${done}&result=1`)).body.equals(result.body)).to.equal(true);
      const [song, plan] = [
        await after.resultOf(waiting[0] as string),
        await after.resultOf(waiting[1] as string),
      ];
      const bytesOf = (answer: typeof song) => partsOf(answer).map(({ bytes }) => bytes.toString("latin1"));
      expect(bytesOf(song)).to.deep.equal(bytesOf(result));
      expect(plan.body[0]).to.include({ caption: "a waltz", lyrics: "la", inference_steps: 1 });
    } finally {
      await second.close();
    }
  });
});
