import { expect } from "chai";
import { Preview, Previews } from "../../../src/music/song/preview.js";

const SAMPLE_RATE = 48_000;
const HEADER_BYTES = 44;
/** -1 dB of full scale in 16 bits. */
const PEAK = Math.round(10 ** (-1 / 20) * 32_768);

/** Stereo of one value. */
const tone = (value: number, seconds = 0.1) => new Float32Array(2 * seconds * SAMPLE_RATE).fill(value);

/** What a listener gets until the sound ends. */
async function heard(preview: Preview): Promise<Int16Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of preview.wav(new AbortController().signal)) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  return new Int16Array(Uint8Array.from(bytes.subarray(HEADER_BYTES)).buffer);
}

describe("a preview", () => {
  it("has the decoder's level, and comes down where that would exceed the peak of songs", async () => {
    const preview = new Preview();
    preview.add({ begin: 0, audio: tone(0.5) });
    preview.add({ begin: 4800, audio: tone(2) });
    preview.add({ begin: 9600, audio: tone(0.5) });
    preview.complete();
    const samples = await heard(preview);
    expect(samples).to.have.length(3 * 9600);
    expect(samples[0]).to.equal(16_384);
    expect(samples[9599]).to.equal(16_384);
    expect(samples[19_199]).to.be.closeTo(PEAK, 1);
    expect(samples[28_799]).to.be.closeTo(PEAK / 4, 1);
    expect(Math.min(...samples)).to.be.greaterThan(0);
  });

  it("keeps four minutes of a song, and what is decoded twice once", async () => {
    const preview = new Preview();
    for (let second = 0; second < 100; second += 50)
      preview.add({ begin: second * SAMPLE_RATE, audio: tone(0.1, 50) });
    preview.add({ begin: 0, audio: tone(0.1, 50) });
    expect(preview.seconds).to.equal(100);
    for (let second = 100; second < 400; second += 50)
      preview.add({ begin: second * SAMPLE_RATE, audio: tone(0.1, 50) });
    expect(preview.seconds).to.equal(240);
    preview.complete();
    expect(await heard(preview)).to.have.length(240 * SAMPLE_RATE * 2);
  });

  it("is let go with its task, but for the two last that are still being read", async () => {
    const previews = new Previews();
    const listener = new AbortController();
    const kept = ["unheard", "a", "b", "c"].map((id) => {
      const preview = previews.of(id);
      if (id !== "unheard") preview.hold(listener.signal);
      preview.add({ begin: 0, audio: tone(0.1) });
      previews.end(id);
      expect(previews.of(id)).not.to.equal(preview);
      return preview;
    });
    const lengths = async () => Promise.all(kept.map(async (preview) => (await heard(preview)).length));
    expect(await lengths()).to.deep.equal([0, 0, 9600, 9600]);
    listener.abort();
    expect(await lengths()).to.deep.equal([0, 0, 0, 0]);
  });
});
