import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { serverForAll } from "../music/live-server.js";

const python = process.env.CARILLON_PEER_PYTHON ?? "python3";
const key = { Authorization: "Bearer k1" };
/** First bytes of a file of each format, and bytes in a second if known. */
const FORMATS = {
  wav: { begin: "52494646", rate: 48_000 * 4 },
  mp3: { begin: "", rate: null },
  flac: { begin: "664c6143", rate: null },
  opus: { begin: "4f676753", rate: null },
  pcm16: { begin: "", rate: 24_000 * 2 },
};
const SECONDS = 1;
/** Length of the songs in openai_client.py. */
const PYTHON_SECONDS = 10;

const song = {
  modalities: ["text", "audio"],
  messages: [{ role: "user", content: "<prompt>a waltz</prompt><lyrics>[Verse]\nRain again</lyrics>" }],
  audio_code_string: "1,2,3,4,5",
  use_audio_codes: true,
  inference_steps: 1,
  seed: 42,
};

describe("clients of OpenAI's interface", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const { client } = server;

  for (const [format, { begin, rate }] of Object.entries(FORMATS)) {
    it(`a chat completion with audio.format ${format} returns base64 audio and the lyrics`, async () => {
      const body = { ...song, audio: { voice: "alloy", format } };
      const answer = await client.post("/v1/chat/completions", body, key);
      expect(answer.status, JSON.stringify(answer.body.error)).to.equal(200);
      expect(answer.body.warnings.join()).to.not.include("unknown");
      const { audio } = answer.body.choices[0].message;
      const file = Buffer.from(audio.data, "base64");
      expect(file.subarray(0, begin.length / 2).toString("hex")).to.equal(begin);
      if (rate !== null) expect(file.length).to.be.within(SECONDS * rate, SECONDS * rate + 300);
      expect(audio.transcript).to.include("Rain again");
      expect(audio.expires_at).to.be.above(answer.body.created);
      expect(answer.headers.get("content-length")).to.not.equal(null);
    });
  }

  it("modalities without audio.format return base64 audio, one choice for each song", async () => {
    const { body } = await client.post("/v1/chat/completions", { ...song, batch_size: 2 }, key);
    expect(
      body.choices.map(({ message }: { message: { audio: { id: string } } }) => message.audio.id),
    ).to.deep.equal([`audio-${body.id}-0`, `audio-${body.id}-1`]);
  });

  it("rejects an unknown audio.format with the known ones", async () => {
    const body = { ...song, audio: { voice: "alloy", format: "vinyl" } };
    const { status, body: answer } = await client.post("/v1/chat/completions", body, key);
    expect(status).to.equal(400);
    expect(answer.error.message).to.include("audio_format must be one of mp3");
  });

  it("the package openai makes songs in all formats, lists models and streams", async function () {
    if (spawnSync(python, ["-c", "import openai"]).status !== 0) this.skip();
    const program = fileURLToPath(new URL("openai_client.py", import.meta.url));
    const run = spawn(python, [program, `${server.url}/openrouter/v1`, "k1"]);
    const [output, errors] = await Promise.all([text(run.stdout), text(run.stderr), once(run, "exit")]);
    expect(errors).to.equal("");
    const read = JSON.parse(output);
    expect(read.model).to.equal("acestep/carillon-nano");
    expect(Object.keys(read.formats)).to.deep.equal(Object.keys(FORMATS));
    expect(read.formats.pcm16.bytes).to.equal(PYTHON_SECONDS * FORMATS.pcm16.rate);
    expect(read.transcript).to.include("Rain again");
    expect(read.several).to.have.length(2);
    expect(read.streamed).to.equal(PYTHON_SECONDS * FORMATS.pcm16.rate);
    expect(read.end).to.equal("stop");
    expect(read.refusal).to.include("audio_format must be one of mp3");
  });
});

describe("sounds for clients of ElevenLabs and LocalAI", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const request = (body: object, query = "", headers: Record<string, string> = { "xi-api-key": "k1" }) =>
    fetch(`${server.url}/v1/sound-generation${query}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });

  it("answers with the audio, in the format of the query", async () => {
    const answer = await request(
      {
        text: "rain on a tin roof",
        duration_seconds: 12,
        model_id: "eleven_text_to_sound_v2",
        prompt_influence: 0.3,
      },
      "?output_format=mp3_44100_128",
    );
    expect(answer.status).to.equal(200);
    expect(answer.headers.get("content-type")).to.equal("audio/mpeg");
    const bytes = (await answer.arrayBuffer()).byteLength;
    expect(bytes).to.be.within(12 * 16_000, 12 * 16_000 + 4000);
    const id = answer.headers.get("x-carillon-task");
    const task = (await server.client.get(`/v1/tasks/${id}`, key)).body.data;
    expect(task.parameters.prompt).to.equal("rain on a tin roof");
    expect(task.warnings).to.include(
      "prompt_influence was ignored: guidance_scale sets how closely a song follows its prompt",
    );
    expect(task.warnings.join()).to.not.include("unknown fields");
  });

  it("accepts LocalAI's names and parameters of songs", async () => {
    const body = { text: "a waltz", duration: 10, model: "ace-step-turbo", lyrics: "[Verse]\nRain", bpm: 90 };
    const answer = await request({ ...body, output_format: "wav", inference_steps: 1 }, "", key);
    expect(answer.headers.get("content-type")).to.equal("audio/wav");
    expect((await answer.arrayBuffer()).byteLength).to.be.above(10 * 48_000 * 4);
  });

  it("rejects a request without a key, without a text or with an unknown format", async () => {
    const refusals: [body: object, headers: Record<string, string>, status: number, mentions: string][] = [
      [{ text: "a waltz" }, {}, 401, "Missing"],
      [{}, key, 400, "text must be a description of the song, got null"],
      [
        { text: "a waltz", output_format: "ulaw_8000" },
        key,
        400,
        "output_format must be mp3, opus, wav or flac",
      ],
      [{ text: "a waltz", duration_seconds: "long" }, key, 400, "audio_duration"],
    ];
    for (const [body, headers, status, mentions] of refusals) {
      const answer = await request(body, "", headers);
      expect(answer.status).to.equal(status);
      const { detail, error } = (await answer.json()) as { detail: string; error: { message: string } };
      expect(detail).to.include(mentions);
      expect(error.message).to.equal(detail);
    }
  });
});
