import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { Preview, Previews } from "../../../src/music/song/preview.js";

const SAMPLE_RATE = 48_000;
const HEADER_BYTES = 44;
/** A 16-bit sample at -1 dB of full scale. */
const PEAK = Math.round(10 ** (-1 / 20) * 32_768);

/** Constant stereo signal. */
const tone = (value: number, seconds = 0.1) => new Float32Array(2 * seconds * SAMPLE_RATE).fill(value);

/** Reads all samples of a preview. */
async function samplesOf(preview: Preview): Promise<Int16Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of preview.wav(new AbortController().signal)) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  return new Int16Array(Uint8Array.from(bytes.subarray(HEADER_BYTES)).buffer);
}

describe("preview of a song during decoding", () => {
  it("a preview plays at the decoder's level until its peak would exceed -1 dB; the rest of the song is quieter", async () => {
    const preview = new Preview();
    preview.add({ begin: 0, audio: tone(0.5) });
    preview.add({ begin: 4800, audio: tone(2) });
    preview.add({ begin: 9600, audio: tone(0.5) });
    preview.complete();
    const samples = await samplesOf(preview);
    expect(samples).to.have.length(3 * 9600);
    expect(samples[0]).to.equal(16_384);
    expect(samples[9599]).to.equal(16_384);
    expect(samples[19_199]).to.be.closeTo(PEAK, 1);
    expect(samples[28_799]).to.be.closeTo(PEAK / 4, 1);
    expect(Math.min(...samples)).to.be.greaterThan(0);
  });

  it("a preview keeps at most four minutes, and ignores parts that are decoded twice", async () => {
    const preview = new Preview();
    for (let second = 0; second < 100; second += 50)
      preview.add({ begin: second * SAMPLE_RATE, audio: tone(0.1, 50) });
    preview.add({ begin: 0, audio: tone(0.1, 50) });
    expect(preview.seconds).to.equal(100);
    for (let second = 100; second < 400; second += 50)
      preview.add({ begin: second * SAMPLE_RATE, audio: tone(0.1, 50) });
    expect(preview.seconds).to.equal(240);
    preview.complete();
    expect(await samplesOf(preview)).to.have.length(240 * SAMPLE_RATE * 2);
  });

  it("many readers share one encoding, and get few pieces in one turn of the event loop", async () => {
    const preview = new Preview();
    preview.add({ begin: 0, audio: tone(0.5, 1) });
    preview.add({ begin: SAMPLE_RATE, audio: tone(2, 1) });
    preview.complete();
    let piecesInTurn = 0;
    let mostInTurn = 0;
    const read = async () => {
      const pieces: Uint8Array[] = [];
      for await (const piece of preview.wav(new AbortController().signal)) {
        // All readers get the header at once.
        if (pieces.push(piece) > 1) mostInTurn = Math.max(mostInTurn, ++piecesInTurn);
      }
      return pieces;
    };
    let isReading = true;
    const nextTurn = () => {
      piecesInTurn = 0;
      if (isReading) setImmediate(nextTurn);
    };
    setImmediate(nextTurn);
    const [first = [], ...others] = await Promise.all(Array.from({ length: 200 }, read));
    isReading = false;
    expect(mostInTurn).to.be.within(1, 16);
    expect(Buffer.concat(first)).to.have.length(HEADER_BYTES + 2 * 2 * 2 * SAMPLE_RATE);
    for (const own of others) expect(own.slice(1).every((piece, i) => piece === first[i + 1])).to.equal(true);
  });

  it("the previews of ended tasks are freed even if their readers stall, except the latest two", async () => {
    const previews = new Previews();
    const readers: AsyncGenerator<Uint8Array>[] = [];
    const parts: WeakRef<ArrayBufferLike>[] = [];
    for (let song = 0; song < 34; song++) {
      const preview = previews.of(String(song));
      const { signal } = new AbortController();
      preview.addListener(signal);
      const audio = tone(0.1, 1);
      parts.push(new WeakRef(audio.buffer));
      preview.add({ begin: 0, audio });
      const reader = preview.wav(signal);
      // Reads the header and one piece, then stalls.
      for (let piece = 0; piece < 2; piece++) await reader.next();
      readers.push(reader);
      previews.end(String(song));
    }
    await sleep(0);
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")();
    expect(parts.filter((part) => part.deref() !== undefined)).to.have.length.at.most(2);
    expect(previews.bytes).to.equal(2 * tone(0, 1).byteLength);
    expect((await readers[0]?.next())?.done).to.equal(true);
    expect((await readers[33]?.next())?.done).to.equal(false);
  });

  it("a preview is freed when its task ends, except the latest two that have readers", async () => {
    const previews = new Previews();
    const listener = new AbortController();
    const kept = ["unheard", "a", "b", "c"].map((id) => {
      const preview = previews.of(id);
      if (id !== "unheard") preview.addListener(listener.signal);
      preview.add({ begin: 0, audio: tone(0.1) });
      previews.end(id);
      expect(previews.of(id)).not.to.equal(preview);
      return preview;
    });
    const lengths = async () => Promise.all(kept.map(async (preview) => (await samplesOf(preview)).length));
    expect(await lengths()).to.deep.equal([0, 0, 9600, 9600]);
    listener.abort();
    expect(await lengths()).to.deep.equal([0, 0, 0, 0]);
  });
});
