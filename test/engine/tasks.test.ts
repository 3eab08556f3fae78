import { expect } from "chai";
import type { Progress, TaskType } from "../../src/engine/addon.js";
import { Engine } from "../../src/engine/engine.js";
import type { PlanarAudio, RenderRequest } from "../../src/engine/types.js";
import { failureOf } from "../failures.js";
import { engineOptions } from "./embedded.js";
import { renderOne, requestOf, songOf, withSong } from "./plain-song.js";

const sampleRate = 48_000;
const samplesPerFrame = 1920;

/** Amplitude-modulated tones: 220 Hz in the left channel, 330 Hz in the right. */
function recording(seconds: number): PlanarAudio {
  const samples = seconds * sampleRate;
  return Float32Array.from({ length: 2 * samples }, (_, index) => {
    const time = (index % samples) / sampleRate;
    const hertz = index < samples ? 220 : 330;
    return 0.4 * Math.sin(2 * Math.PI * hertz * time) * Math.sin(2 * Math.PI * 1.5 * time);
  });
}

/** Both channels of a recording from second `start` to second `end`. */
function part(audio: PlanarAudio, start: number, end: number): PlanarAudio {
  const channels = [audio.subarray(0, audio.length / 2), audio.subarray(audio.length / 2)];
  const [from, to] = [Math.round(start * sampleRate), Math.round(end * sampleRate)];
  return Float32Array.from(channels.flatMap((channel) => [...channel.subarray(from, to)]));
}

/** Whether two recordings are identical. */
function same(left: Float32Array, right: Float32Array): boolean {
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    Buffer.from(buffer, byteOffset, byteLength);
  return bytes(left).equals(bytes(right));
}

describe("rendering of all tasks with the built-in model", () => {
  const source = recording(2);
  const base: RenderRequest = {
    ...withSong(requestOf(2), { trackName: "bass", trackClasses: ["drums"] }),
    source: { audio: source, window: null },
  };
  const windowed = (startSeconds: number, endSeconds: number) => ({
    audio: source,
    window: { startSeconds, endSeconds },
  });
  const engine = new Engine(engineOptions, () => {});
  after(() => engine.close());

  async function song(change: Partial<RenderRequest>): Promise<PlanarAudio> {
    const { audio, samplesPerChannel } = await renderOne(engine, { ...base, ...change });
    expect(audio).to.have.length(2 * samplesPerChannel);
    expect(audio.every(Number.isFinite)).to.equal(true);
    return audio;
  }

  async function refusal(change: Partial<RenderRequest>): Promise<string> {
    const { code, message } = await failureOf(song(change));
    return `${code}: ${message}`;
  }

  for (const task of ["cover", "repaint", "lego", "extract", "complete"] satisfies TaskType[]) {
    it(`renders ${task} at the length of its source, with equal audio for equal seeds`, async () => {
      const first = await song({ task });
      expect(first).to.have.length(source.length);
      expect(same(await song({ task }), first)).to.equal(true);
    });
  }

  it("repaint keeps the source outside the window; a window that begins before 0 makes the song longer", async () => {
    const inner = await song({ task: "repaint", source: windowed(0.8, 1.2) });
    expect(same(part(inner, 0, 0.75), part(source, 0, 0.75))).to.equal(true);
    expect(same(part(inner, 1.25, 2), part(source, 1.25, 2))).to.equal(true);
    expect(same(part(inner, 0.8, 1.2), part(source, 0.8, 1.2))).to.equal(false);
    const longer = await song({ task: "repaint", source: windowed(-0.4, 0.4) });
    expect(longer).to.have.length(2 * 60 * samplesPerFrame);
    expect(same(part(longer, 0.9, 2.4), part(source, 0.5, 2))).to.equal(true);
  });

  it("a new part is about as loud as the source beside it, however loud; kept samples stay, and latents keep their level", async () => {
    const request = withSong(requestOf(8), { caption: "pop with drums" });
    const { audio: original, latents } = await renderOne(engine, request);
    const levelOf = (audio: PlanarAudio) =>
      10 * Math.log10(audio.reduce((sum, sample) => sum + sample ** 2, 0) / audio.length);
    for (const decibels of [9, -30]) {
      const input = original.map((sample) => Math.max(-1, Math.min(1, sample * 10 ** (decibels / 20))));
      for (const [startSeconds, endSeconds] of [
        [3, 5],
        [8, 10],
      ] as const) {
        const window = { startSeconds, endSeconds };
        const audio = await song({ task: "repaint", source: { audio: input, window } });
        expect(same(part(audio, 0, startSeconds - 0.05), part(input, 0, startSeconds - 0.05))).to.equal(true);
        // Power, unlike the loudness that the engine measures, weights all frequencies alike.
        expect(levelOf(part(audio, startSeconds, endSeconds))).to.be.closeTo(levelOf(input), 3);
      }
    }
    const repainted = await song({
      task: "repaint",
      source: { audio: null, latents, window: { startSeconds: 4, endSeconds: 5 } },
    });
    expect(levelOf(part(repainted, 0, 3))).to.be.closeTo(levelOf(part(original, 0, 3)), 0.1);
  });

  it("encodes a recording, and makes the same cover from recording and codes", async () => {
    const long = recording(6);
    const codes = await engine.renderer.encodeCodes(1, long, {});
    expect(codes).to.have.length(30);
    const ofSix = withSong(base, songOf(6));
    const covered = await song({ ...ofSix, task: "cover", source: { audio: long, window: null } });
    const coded = await song({ ...withSong(ofSix, { codes }), task: "cover", source: null });
    expect(same(coded, covered)).to.equal(true);
  });

  it("a timbre reference, audioCoverStrength and coverNoiseStrength each change a cover", async () => {
    const plain = await song({ task: "cover" });
    expect(same(await song({ task: "cover", referenceAudio: recording(1) }), plain)).to.equal(false);
    expect(
      same(await song({ task: "cover", denoise: { ...base.denoise, audioCoverStrength: 0.5 } }), plain),
    ).to.equal(false);
    expect(
      same(await song({ task: "cover", denoise: { ...base.denoise, coverNoiseStrength: 0.5 } }), plain),
    ).to.equal(false);
  });

  it("rendering is not affected if the caller changes the source audio meanwhile", async () => {
    const expected = await song({ task: "extract" });
    const sourceAudio = source.slice();
    const { audio } = await renderOne(
      engine,
      { ...base, task: "extract", source: { audio: sourceAudio, window: null } },
      { onProgress: () => sourceAudio.fill(0) },
    );
    expect(sourceAudio.every((sample) => sample === 0)).to.equal(true);
    expect(same(audio, expected)).to.equal(true);
  });

  it("an abort stops rendering during the encoding of a recording", async () => {
    const stop = new AbortController();
    const progress: Progress[] = [];
    const rendering = renderOne(
      engine,
      { ...base, task: "cover", source: { audio: recording(60), window: null } },
      {
        signal: stop.signal,
        onProgress: (report) => {
          progress.push(report);
          stop.abort();
        },
      },
    );
    const outcome = await rendering.catch((error: { code: string }) => error.code);
    expect(outcome).to.equal("CANCELLED");
    expect(progress.map(({ stage }) => stage)).to.not.include("decode");
  });

  it("rejects invalid sources and references with a reason", async () => {
    expect(await refusal({ task: "repaint", source: null })).to.match(
      /^BAD_ARGUMENT: repaint needs source audio/,
    );
    expect(await refusal({ task: "repaint", source: windowed(3, 4) })).to.match(
      /^BAD_ARGUMENT: .*is outside the source/,
    );
    expect(await refusal({ task: "cover", source: windowed(0, 1) })).to.match(
      /^BAD_ARGUMENT: cover works on the whole song/,
    );
    expect(await refusal({ referenceAudio: new Float32Array(9600) })).to.match(
      /^BAD_ARGUMENT: the reference audio is silent/,
    );
    const noNumbers = new Float32Array(9600).fill(Number.NaN);
    expect(await refusal({ task: "cover", source: { audio: noNumbers, window: null } })).to.match(
      /^BAD_ARGUMENT: the source audio contains a value that is not finite/,
    );
    expect(await refusal({ referenceAudio: new Float32Array(3) })).to.contain("planar stereo");
  });
});
