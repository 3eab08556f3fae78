/** Previews from a real server with the built-in model. */
import { expect } from "chai";
import { Carillon } from "../../src/client/index.js";
import { serverForAll, shortSong } from "./live-server.js";

const HEADER_BYTES = 44;
/** This task makes its songs one after another, so its preview starts early and lasts long. */
const LONG = { prompt: "a long waltz", audio_duration: 30, inference_steps: 1, batch_size: 8 };

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(stream).arrayBuffer());
}

/** Samples of a WAV file's `data` chunk. */
function samplesOf(wav: Buffer): Int16Array {
  const begin = wav.indexOf("data") + 8;
  const samples = wav.subarray(begin, begin + wav.readUInt32LE(begin - 4));
  return new Int16Array(Uint8Array.from(samples).buffer);
}

describe("GET /v1/tasks/:id/preview", function () {
  this.timeout(180_000);
  const server = serverForAll({ SVC_API_KEY: "open sesame" });
  let carillon: Carillon;
  const stateOf = async (id: string) => (await carillon.task(id)).state;

  before(async () => {
    carillon = new Carillon({ url: server.url, key: "open sesame" });
  });

  /** Status and Location of a response. */
  async function answerOf(id: string, query = "?ai_token=open%20sesame") {
    const response = await fetch(`${server.url}/v1/tasks/${id}/preview${query}`, { redirect: "manual" });
    await response.body?.cancel();
    return { status: response.status, location: response.headers.get("location") };
  }

  it("a preview starts while the rest is decoded, and finally contains the whole song", async () => {
    const { task_id: id } = await carillon.submit({
      ...LONG,
      ...{ audio_format: "wav", batch_size: 2, fade_out: 0 },
    });
    const [aloud, aside] = (await carillon.preview(id)).tee();
    const reader = aloud.getReader();
    for (let bytes = 0; bytes <= HEADER_BYTES; ) bytes += (await reader.read()).value?.length ?? 0;
    expect(await stateOf(id)).to.equal("running");
    const { preview_seconds: heard } = await carillon.task(id);
    expect(heard).to.be.within(1, 30);
    void reader.cancel();

    const preview = samplesOf(await readAll(aside));
    const { songs } = await carillon.wait(id);
    const whole = samplesOf(
      Buffer.from(await (await carillon.download(songs[0] as { file: string })).arrayBuffer()),
    );
    expect(preview.length).to.equal(whole.length);
    // Preview and song differ only in level.
    const gain = Math.max(...peaks(whole)) / Math.max(...peaks(preview));
    expect(gain).to.be.greaterThan(0);
    const differences = whole.map((sample, index) => Math.abs(sample - gain * (preview[index] as number)));
    expect(Math.max(...peaks(differences))).to.be.lessThan(4 * Math.max(1, gain));
  });

  /** Peak of every 4096 samples, because Math.max cannot take all samples of a song as arguments. */
  function peaks(samples: Int16Array): number[] {
    const found: number[] = [];
    for (let begin = 0; begin < samples.length; begin += 4096)
      found.push(Math.max(...samples.subarray(begin, begin + 4096).map(Math.abs)));
    return found;
  }

  it("task events announce a preview with preview_seconds", async () => {
    const { task_id: id } = await carillon.submit({ ...LONG, batch_size: 1 });
    let heard = 0;
    for await (const { event, data } of carillon.events(id)) {
      if (event === "progress") heard = Math.max(heard, data.preview_seconds);
      if (event === "done") expect(data.preview_seconds).to.equal(0);
    }
    expect(heard).to.equal(30);
  });

  it("a preview ends when the task is cancelled; a stalled reader does not slow the task", async () => {
    const { task_id: id } = await carillon.submit(LONG);
    const waiting = await carillon.submit(shortSong);
    const unread = await carillon.preview(id);
    const reader = (await carillon.preview(id)).getReader();
    await reader.read();
    const refused = answerOf(waiting.task_id);
    await carillon.cancel(waiting.task_id);
    expect((await refused).status).to.equal(404);
    await carillon.cancel(id);
    let isDone = false;
    while (!isDone) isDone = (await reader.read()).done;
    expect(await stateOf(id)).to.equal("failed");
    await unread.cancel();
    expect((await answerOf(id)).status).to.equal(404);
  });

  it("redirects to the song if the task has ended, and keeps ai_token", async () => {
    const task = await carillon.make({ ...shortSong, audio_format: "wav" });
    const { status, location } = await answerOf(task.task_id);
    expect(status).to.equal(307);
    expect(location).to.equal(`${task.songs[0]?.file}&ai_token=open%20sesame`);
    const song = await readAll(await carillon.preview(task.task_id));
    expect(song.length).to.equal(task.songs[0]?.bytes);
    const inPage = await fetch(carillon.previewUrl(task.task_id));
    expect(inPage.headers.get("content-type")).to.equal("audio/wav");
    await inPage.body?.cancel();
  });

  it("refuses unknown tasks and requests without the key", async () => {
    expect((await answerOf("4b3c0a54-0000-4000-8000-000000000000")).status).to.equal(404);
    expect((await answerOf("any", "")).status).to.equal(401);
  });
});
