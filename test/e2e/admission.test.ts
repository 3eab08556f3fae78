import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, truncateSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { findFfmpeg } from "../../src/music/audio/ffmpeg.js";
import { INPUT_DESCRIPTOR } from "../../src/music/audio/starter.js";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { type LiveServer, startLiveServer } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

const POLL_INTERVAL_MS = 20;

/** The 32-bit fields of an AU file after its magic number: data offset, data size, encoding, sample rate, channels. */
function auHeader(...fields: number[]): Buffer {
  const bytes = Buffer.alloc(4 * fields.length);
  for (const [index, field] of fields.entries()) bytes.writeUInt32BE(field, 4 * index);
  return bytes;
}

const cover = { prompt: "a song", task_type: "cover", inference_steps: 1, batch_size: 1 };

describe("admission of recordings that take long to decode", () => {
  const directory = temporaryDirectory();
  let server: LiveServer;
  const long = join(directory, "days.au");
  const short = join(directory, "short.wav");

  const start = (name: string): Promise<LiveServer> =>
    startLiveServer(join(directory, name), { SVC_SOURCE_MAX_SECONDS: "1000000" });

  before(async () => {
    // Six days of 8-bit audio at 8 kHz, so decoding outlasts any test. The file is sparse: only its header takes space.
    writeFileSync(long, Buffer.concat([Buffer.from(".snd"), auHeader(24, 0xffffffff, 2, 8000, 1)]));
    truncateSync(long, 4e9);
    writeRecording(short, { seconds: 1 });
    server = await start("server");
  });

  after(() => Promise.all([server.close(), endServed()]));

  /** Number of ffmpeg processes that are reading recordings of this test. */
  function decoders(): number {
    return readdirSync("/proc").filter((pid) => {
      if (!/^\d+$/.test(pid)) return false;
      try {
        const isFfmpeg = readFileSync(join("/proc", pid, "comm"), "utf8").trim() === "ffmpeg";
        return (
          isFfmpeg && readlinkSync(join("/proc", pid, "fd", `${INPUT_DESCRIPTOR}`)).startsWith(directory)
        );
      } catch {
        return false; // The process has exited.
      }
    }).length;
  }

  async function decodersAre(count: number): Promise<void> {
    while (decoders() !== count) await sleep(POLL_INTERVAL_MS);
  }

  /** Submits a task with the long recording. Returns the status, or null if the request was aborted. */
  async function send(url: string, signal?: AbortSignal): Promise<number | null> {
    try {
      const form = new FormData();
      for (const [name, value] of Object.entries(cover)) form.append(name, String(value));
      form.append("src_audio_path", long);
      form.append("ref_audio", uploadOf(short));
      const options = signal === undefined ? {} : { signal };
      return (await fetch(`${url}/release_task`, { method: "POST", body: form, ...options })).status;
    } catch (error) {
      if (signal?.aborted) return null;
      throw error;
    }
  }

  const uploads = (name: string): string[] => readdirSync(join(directory, name, "uploads"));

  it("ffmpeg stops decoding when the client disconnects, and neither task nor file is left", async () => {
    const client = new AbortController();
    const sent = send(server.url, client.signal);
    await decodersAre(1);
    client.abort();
    expect(await sent).to.equal(null);
    await decodersAre(0);
    while (uploads("server").length > 0) await sleep(POLL_INTERVAL_MS);
    expect((await server.client.get("/v1/stats")).body.data.jobs.total).to.equal(0);
  });

  it("long recordings are decoded two at a time while others wait @slow", async () => {
    const client = new AbortController();
    const sent = Array.from({ length: 4 }, () => send(server.url, client.signal));
    await decodersAre(2);
    while (uploads("server").length < 4) await sleep(POLL_INTERVAL_MS);
    const waiting = server.client.submit({ ...cover, src_audio_path: short });
    for (let i = 0; i < 20; i++) {
      expect(decoders()).to.be.at.most(2);
      await sleep(POLL_INTERVAL_MS);
    }
    client.abort();
    expect(await Promise.all(sent)).to.deep.equal([null, null, null, null]);
    expect((await server.client.finished(await waiting)).item.status).to.equal(1);
    expect((await server.client.get("/v1/stats")).body.data.jobs.total).to.equal(1);
  });

  it("long recordings of one client do not delay another client, and are rejected beyond a limit @slow", async () => {
    const client = new AbortController();
    const sent = Array.from({ length: 100 }, () => send(server.url, client.signal));
    const firstRefused = await Promise.any(
      sent.map(async (status) => (await status) ?? Promise.reject(new Error("hung up"))),
    );
    expect(firstRefused).to.equal(429);
    await decodersAre(2);
    expect(await statusFrom("127.0.0.2", { ...cover, src_audio_path: short })).to.equal(200);
    client.abort();
    const statuses = await Promise.all(sent);
    expect(statuses.filter((status) => status === 429)).to.have.length(100 - 2 - 64);
    await decodersAre(0);
  });

  /** Submits from another loopback address, so that the server sees another client. */
  async function statusFrom(localAddress: string, parameters: object): Promise<number | undefined> {
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", localAddress, headers };
    const sending = httpRequest(`${server.url}/release_task`, options).end(JSON.stringify(parameters));
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  }

  it("ffmpeg stops decoding when the server is killed @slow", async function () {
    if (!(await findFfmpeg()).sandbox.description.includes("ended with the server")) this.skip();
    const silent = writeRecording(join(directory, "silent for ever.mp3"), { seconds: 1 });
    truncateSync(silent, 3e10);
    const killed = await ServedProcess.start(join(directory, "killed"));
    const sent = killed.client.submit({ ...cover, src_audio_path: silent }).catch(() => "cut");
    await decodersAre(1);
    await killed.end("SIGKILL");
    expect(await sent).to.equal("cut");
    await decodersAre(0);
  });

  it("a recording that is being decoded does not delay the stop of the server", async () => {
    const other = await start("other");
    const sent = send(other.url).catch(() => "cut");
    await decodersAre(1);
    await other.close();
    await decodersAre(0);
    expect(await sent).to.be.oneOf([503, "cut"]);
    while (uploads("other").length > 0) await sleep(POLL_INTERVAL_MS);
  });
});
