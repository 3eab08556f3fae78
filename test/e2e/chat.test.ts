import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { serverForAll } from "../music/live-server.js";

const shortChat = {
  model: "acestep/carillon-nano",
  messages: [{ role: "user", content: "<prompt>a waltz</prompt><lyrics>[Verse]\nRain again</lyrics>" }],
  audio_config: { duration: 10, format: "wav", vocal_language: "en", bpm: 90 },
  inference_steps: 1,
  seed: 42,
};

/** A song of a second: codes may be shorter than the minimum of the duration. */
const quickChat = { ...shortChat, audio_code_string: "1,2,3,4,5", use_audio_codes: true };

interface Chunk {
  object: string;
  choices: [{ delta: { role?: string; content?: string; audio?: unknown[] }; finish_reason: string | null }];
}

function bytesOf(part: unknown): Buffer {
  const { type, audio_url } = part as { type: string; audio_url: { url: string } };
  expect(type).to.equal("audio_url");
  const [head, data = ""] = audio_url.url.split(",");
  expect(head).to.equal("data:audio/wav;base64");
  return Buffer.from(data, "base64");
}

describe("songs through chat completions", () => {
  const key = { Authorization: "Bearer k1" };
  const server = serverForAll({ SVC_API_KEY: "k1" });
  const { client } = server;

  it("a chat completion returns the same song as a task with the same parameters", async () => {
    const { status, headers, body } = await client.post("/v1/chat/completions", shortChat, key);
    expect(status, JSON.stringify(body.error)).to.equal(200);
    expect(body).to.include({ object: "chat.completion", model: "acestep/carillon-nano" });
    expect(Number(headers.get("content-length"))).to.be.above(10 * 48_000 * 4);
    expect(body.id).to.match(/^chatcmpl-[0-9a-f]{16}$/);
    const [{ message, finish_reason }] = body.choices;
    expect(finish_reason).to.equal("stop");
    expect(message.content).to.include("**Caption:** a waltz").and.include("**BPM:** 90");
    expect(message.content).to.include("Rain again");
    expect(message.audio).to.have.length(1);
    expect(body.warnings).to.deep.equal(['time_signature 3 was taken from the prompt\'s "waltz"']);

    const { task_id } = (
      await client.post(
        "/release_task",
        {
          ...{
            prompt: "a waltz",
            lyrics: "[Verse]\nRain again",
            audio_duration: 10,
            bpm: 90,
            lm_cfg_scale: 2,
          },
          ...{ vocal_language: "en", inference_steps: 1, batch_size: 1, audio_format: "wav" },
          ...{ seed: 42, use_random_seed: false, ai_token: "k1" },
        },
        key,
      )
    ).body.data;
    for (;;) {
      const [item] = (await client.post("/query_result", { task_id_list: [task_id] }, key)).body.data;
      if (item.status === 0) {
        await sleep(50);
        continue;
      }
      const audio = await fetch(server.url + JSON.parse(item.result)[0].file, { headers: key });
      expect(bytesOf(message.audio[0]).equals(Buffer.from(await audio.arrayBuffer()))).to.equal(true);
      break;
    }
  });

  it("chat completions are streamed on request", async () => {
    const response = await fetch(`${server.url}/openrouter/v1/chat/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...key },
      body: JSON.stringify({ ...quickChat, stream: true }),
    });
    expect(response.headers.get("content-type")).to.match(/^text\/event-stream/);
    const events = (await response.text()).trim().split("\n\n");
    expect(events.pop()).to.equal("data: [DONE]");
    const chunks = events.map((event) => JSON.parse(event.replace(/^data: /, "")) as Chunk);
    expect(chunks.every(({ object }) => object === "chat.completion.chunk")).to.equal(true);
    expect(chunks[0]?.choices[0].delta.role).to.equal("assistant");
    const text = chunks.map(({ choices }) => choices[0].delta.content ?? "").join("");
    expect(text).to.include("**Caption:** a waltz");
    const audio = chunks.flatMap(({ choices }) => choices[0].delta.audio ?? []);
    expect(bytesOf(audio[0]).subarray(0, 4).toString()).to.equal("RIFF");
    expect(chunks.at(-1)?.choices[0].finish_reason).to.equal("stop");
  });

  it("n songs are n choices; batch_size makes several songs of one choice", async () => {
    const several = { ...quickChat, n: 2, temperature: 0.7, top_p: 0.9 };
    const { body } = await client.post("/v1/chat/completions", several, key);
    expect(body.warnings.join()).to.not.include("lm_");
    expect(body.choices.map(({ index }: { index: number }) => index)).to.deep.equal([0, 1]);
    const songs = body.choices.map(({ message }: { message: { content: string; audio: unknown[] } }) => {
      expect(message.content).to.include("**Caption:** a waltz");
      expect(message.audio).to.have.length(1);
      return bytesOf(message.audio[0]);
    });
    expect(songs[0].equals(songs[1])).to.equal(false);

    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...key },
      body: JSON.stringify({ ...several, stream: true }),
    });
    const events = (await response.text()).trim().split("\n\n").slice(0, -1);
    const parts = events.map((event) => JSON.parse(event.replace(/^data: /, "")).choices[0]);
    const audio = parts.filter(({ delta }) => delta.audio !== undefined);
    expect(audio.map(({ index, delta }) => [index, delta.audio.length])).to.deep.equal([
      [0, 1],
      [1, 1],
    ]);
    expect(bytesOf(audio[0].delta.audio[0]).equals(songs[0])).to.equal(true);
    const ends = parts.filter(({ finish_reason }) => finish_reason === "stop");
    expect(ends.map(({ index }) => index)).to.deep.equal([0, 1]);

    const [original] = (await client.get("/v1/tasks?limit=1", key)).body.data.tasks;
    const { task_id } = (await client.post(`/v1/tasks/${original.task_id}/retake`, {}, key)).body.data;
    for await (const _ of client.events(task_id, key));
    const [item] = (await client.post("/query_result", { task_id_list: [task_id] }, key)).body.data;
    const retakes = JSON.parse(item.result);
    expect(retakes).to.have.length(2);
    expect(retakes[0].warnings.join()).to.not.include("lm_");

    const together = await client.post("/v1/chat/completions", { ...quickChat, batch_size: 2 }, key);
    expect(together.body.choices).to.have.length(1);
    expect(together.body.choices[0].message.audio).to.have.length(2);
    const refused = await client.post("/v1/chat/completions", { ...shortChat, n: "many" }, key);
    expect(refused.body.detail).to.include("batch_size (sent as n) must be a number");
  });

  it("a chat completion uses a recording in the message as the source", async () => {
    const source = (await client.post("/v1/chat/completions", quickChat, key)).body.choices[0].message
      .audio[0];
    const data = source.audio_url.url.split(",")[1];
    const cover = {
      ...shortChat,
      task_type: "cover",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "the same on a harp" },
            { type: "input_audio", input_audio: { data, format: "wav" } },
          ],
        },
      ],
    };
    const { status, body } = await client.post("/v1/chat/completions", cover, key);
    expect(status, JSON.stringify(body.error)).to.equal(200);
    expect(body.choices[0].message.content).to.include("the same on a harp").and.include("1s");
    expect(body.warnings.join()).to.include("the source sets the length");
  });

  it("chat completions return errors in the chat format, with an additional detail field", async () => {
    const refusals: [body: object, headers: Record<string, string>, status: number, mentions: string][] = [
      [shortChat, {}, 401, "Authorization"],
      [{ model: "x" }, key, 400, "messages must be a list of messages, got null"],
      [{ model: "x", messages: [] }, key, 400, "a user message"],
      [{ ...shortChat, messages: [{ role: "user", content: " " }] }, key, 400, "text or audio"],
      [{ ...shortChat, task_type: "karaoke" }, key, 400, "task_type"],
      [{ ...shortChat, inference_steps: "many" }, key, 400, "inference_steps"],
      [{ ...shortChat, audio_config: [1] }, key, 400, "audio_config must be an object, got [1]"],
    ];
    for (const [body, headers, status, mentions] of refusals) {
      const answer = await client.post("/v1/chat/completions", body, headers);
      expect(answer.status).to.equal(status);
      expect(answer.body.detail).to.include(mentions);
      expect(answer.body.error).to.include({ message: answer.body.detail, param: null, code: status });
    }
  });

  it("chat completions are cancelled when the client disconnects", async () => {
    const gone = new AbortController();
    const waiting = fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...key },
      body: JSON.stringify({ ...shortChat, audio_config: { duration: 600 }, inference_steps: 20 }),
      signal: gone.signal,
    }).catch(() => "gone");
    const jobs = async () => (await client.get("/v1/stats", key)).body.data.jobs;
    while ((await jobs()).running === 0) await sleep(20);
    gone.abort();
    expect(await waiting).to.equal("gone");
    while ((await jobs()).running > 0) await sleep(20);
    expect((await jobs()).failed).to.equal(1);
  });

  it("models are listed in the chat format at the base URL of chat completions", async () => {
    expect((await client.get("/openrouter/v1/models")).status).to.equal(401);
    const { body } = await client.get("/openrouter/v1/models", key);
    expect(body.object).to.equal("list");
    expect(body.data[0]).to.include({ id: "acestep/carillon-nano", name: "carillon-nano" });
    expect((await client.get("/v1/models", key)).body.data.default_model).to.equal("carillon-nano");
    expect((await client.get("/openrouter/health")).body.data.status).to.equal("ok");
    expect((await client.get("/openrouter/nowhere")).status).to.equal(404);
    expect((await client.get("/openrouter/release_task")).headers.get("allow")).to.equal("POST");
  });
});
