import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { peakOf } from "../../../src/music/audio/decode.js";
import {
  type EncodedFile,
  EncodeError,
  type EncodeJob,
  encodeAudio,
  interleave,
} from "../../../src/music/audio/encode.js";
import { FfmpegError } from "../../../src/music/audio/ffmpeg.js";
import { AUDIO_FORMATS, AUDIO_PROFILES, type AudioFormat } from "../../../src/music/audio/formats.js";
import { temporaryDirectory } from "../tasks.js";

const sampleRate = 48_000;

/** Planar audio of slightly over a second, with a different tone in each channel. */
function twoTones(samplesPerChannel = 50_000): Float32Array {
  const audio = new Float32Array(2 * samplesPerChannel);
  for (let i = 0; i < samplesPerChannel; i++) {
    audio[i] = 0.5 * Math.sin((2 * Math.PI * 440 * i) / sampleRate);
    audio[samplesPerChannel + i] = 0.25 * Math.sin((2 * Math.PI * 660 * i) / sampleRate);
  }
  return audio;
}

type Tags = Record<string, string>;

interface Probe {
  streams: { codec_name: string; sample_rate: string; channels: number; bit_rate: string; tags?: Tags }[];
  format: { format_name: string; duration: string; tags?: Tags };
}

function probe(path: string): Probe {
  const args = ["-v", "error", "-print_format", "json", "-show_streams", "-show_format", path];
  return JSON.parse(execFileSync("ffprobe", args, { encoding: "utf8" })) as Probe;
}

const expected: Record<AudioFormat, { codec: string; container: string }> = {
  mp3: { codec: "mp3", container: "mp3" },
  flac: { codec: "flac", container: "flac" },
  opus: { codec: "opus", container: "ogg" },
  aac: { codec: "aac", container: "aac" },
  ogg: { codec: "vorbis", container: "ogg" },
  wav: { codec: "pcm_s16le", container: "wav" },
  wav24: { codec: "pcm_s24le", container: "wav" },
  wav32: { codec: "pcm_f32le", container: "wav" },
};

describe("encoding songs to audio files", () => {
  const directory = temporaryDirectory();
  const audio = twoTones();
  const samplesPerChannel = audio.length / 2;

  function encode(format: AudioFormat, name: string, signal?: AbortSignal): Promise<EncodedFile> {
    return encodeAudio({ audio, samplesPerChannel, sampleRate, format, path: join(directory, name), signal });
  }

  function finished(
    format: AudioFormat,
    name: string,
    finish: EncodeJob["finish"],
    played = audio,
  ): Promise<EncodedFile> {
    const job = { audio: played, samplesPerChannel, sampleRate, format, path: join(directory, name) };
    return encodeAudio(finish === undefined ? job : { ...job, finish });
  }

  /** Decodes a file with ffmpeg. Returns interleaved samples. */
  function samplesOf(name: string): Float32Array {
    const args = ["-v", "error", "-i", join(directory, name), "-f", "f32le", "-"];
    const bytes = execFileSync("ffmpeg", args, { maxBuffer: 1 << 26 });
    return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  }

  for (const format of AUDIO_FORMATS) {
    const all: readonly number[] = AUDIO_PROFILES[format].sampleRates;
    // Another test writes each format at the rate of the song.
    const rates = [all[0] as number, all.at(-1) as number].filter((rate) => rate !== sampleRate);
    if (rates.length === 0) continue;
    it(`writes ${format} at ${rates.join(" and ")} Hz`, async () => {
      for (const rate of rates) {
        const path = join(directory, `${rate}.${format}`);
        await finished(format, `${rate}.${format}`, { sampleRate: rate });
        const { streams, format: container } = probe(path);
        expect(streams[0]).to.include({ codec_name: expected[format].codec, sample_rate: String(rate) });
        expect(Number(container.duration)).to.be.closeTo(samplesPerChannel / sampleRate, 0.2);
      }
    });
  }

  it("writes mp3 at the requested bit rate", async () => {
    for (const [mp3Bitrate, bits] of [
      [null, "256000"],
      ["128k", "128000"],
      ["320k", "320000"],
    ] as const) {
      await finished("mp3", "rate.mp3", { mp3Bitrate });
      expect(probe(join(directory, "rate.mp3")).streams[0]?.bit_rate).to.equal(bits);
    }
  });

  it("keeps 24 bits of every sample in wav24", async () => {
    await encode("wav24", "24.wav");
    const decoded = samplesOf("24.wav");
    for (const frame of [1, 500, samplesPerChannel - 1]) {
      expect(decoded[2 * frame]).to.be.closeTo(audio[frame] as number, 2 ** -23);
    }
  });

  it("normalises the peak of loud and quiet songs, and leaves silence unchanged", async () => {
    for (const [gain, db, peak] of [
      [1, -6, 0.501187],
      [0.001, 0, 1],
      [0, -1, 0],
    ] as const) {
      await finished(
        "wav32",
        "level.wav",
        { normalizationDb: db },
        audio.map((sample) => gain * sample),
      );
      expect(peakOf(samplesOf("level.wav"))).to.be.closeTo(peak, 1e-5);
    }
  });

  it("peak_clip scales all but the loudest millionths of the samples to full scale, which clips these", async () => {
    const loud = audio.map((sample, index) => (index < 40 ? 0.9 : 0.25 * sample));
    const [whole, clipped] = [0, 999] as const;
    for (const format of ["wav32", "wav"] as const) {
      for (const peakClip of [whole, clipped]) {
        await finished(format, `clip-${peakClip}.${format}`, { peakClip, normalizationDb: -20 }, loud);
      }
      const [plain, scaled] = [whole, clipped].map((name) => samplesOf(`clip-${name}.${format}`)) as [
        Float32Array,
        Float32Array,
      ];
      expect(peakOf(plain)).to.be.closeTo(1, 1e-4);
      expect(peakOf(scaled)).to.be.closeTo(1, 1e-4);
      const at = 2 * (samplesPerChannel >> 1);
      expect((scaled[at] as number) / (plain[at] as number)).to.be.above(2);
    }
  });

  it("brings a song to a loudness as measured by ffmpeg; a peak that would exceed the limit keeps it quieter", async () => {
    const quiet = twoTones(5 * sampleRate).map((sample) => 0.1 * sample);
    const long = { audio: quiet, samplesPerChannel: 5 * sampleRate, sampleRate, format: "wav32" as const };
    const path = join(directory, "loudness.wav");
    for (const [finish, lufs, peak] of [
      [{}, -28.71, 0.05],
      [{ loudness: -20 }, -20, 0.1363],
      [{ loudness: -5 }, -5, 0.7663],
      [{ loudness: -5, normalizationDb: -12 }, -14.69, 0.2512],
    ] as const) {
      const { loudness } = await encodeAudio({ ...long, path, finish });
      const { stderr } = spawnSync("ffmpeg", ["-i", path, "-af", "ebur128", "-f", "null", "-"], {
        encoding: "utf8",
      });
      const measured = Number(/Integrated loudness:\s+I:\s+(-?[\d.]+) LUFS/.exec(stderr)?.[1]);
      expect(loudness).to.be.closeTo(measured, 0.06);
      expect(loudness, JSON.stringify(finish)).to.be.closeTo(lufs, 0.06);
      expect(peakOf(samplesOf("loudness.wav"))).to.be.closeTo(peak, 1e-3);
    }
    expect(await encodeAudio({ ...long, audio: new Float32Array(quiet.length), path })).to.include({
      loudness: null,
    });
  });

  it("fades both channels in and out linearly", async () => {
    const constant = new Float32Array(audio.length).fill(0.5);
    const half = samplesPerChannel / 2;
    for (const format of ["wav32", "flac"] as const) {
      const finish = { fadeInSeconds: 0.25, fadeOutSeconds: half / sampleRate };
      await finished(format, `faded.${format}`, finish, constant);
      const faded = samplesOf(`faded.${format}`);
      const [first, quarter, middle, later, last] = [0, 6000, half - 1, 1.5 * half, samplesPerChannel - 1];
      for (const channel of [0, 1]) {
        const at = (frame: number) => faded[2 * frame + channel] as number;
        expect(at(first)).to.equal(0);
        expect(at(quarter)).to.be.closeTo(0.25, 1e-3);
        expect(at(middle)).to.be.closeTo(0.5, 1e-3);
        expect(at(later)).to.be.closeTo(0.25, 1e-3);
        expect(at(last)).to.be.closeTo(0, 1e-3);
      }
    }
  });

  it("fades a whole song that is shorter than its fades", async () => {
    const constant = new Float32Array(audio.length).fill(0.5);
    await finished("wav32", "short.wav", { fadeInSeconds: 60, fadeOutSeconds: 60 }, constant);
    const faded = samplesOf("short.wav");
    expect(faded.length).to.equal(2 * samplesPerChannel);
    expect(peakOf(faded)).to.be.closeTo(0.125, 1e-3);
  });

  it("keeps every sample in wav32", async () => {
    await encode("wav32", "exact.wav");
    const decoded = samplesOf("exact.wav");
    expect(decoded.length).to.equal(2 * samplesPerChannel);
    for (const frame of [0, 1, 16_383, 16_384, samplesPerChannel - 1]) {
      expect(decoded[2 * frame]).to.equal(audio[frame]);
      expect(decoded[2 * frame + 1]).to.equal(audio[samplesPerChannel + frame]);
    }
  });

  it("rounds and clips 16-bit wav samples as ffmpeg does", async () => {
    const loud = Float32Array.from({ length: 2 * 1000 }, (_, i) => 1.2 * Math.sin(i / 7));
    const path = join(directory, "loud.wav");
    const job = { audio: loud, samplesPerChannel: 1000, sampleRate };
    await encodeAudio({ ...job, format: "wav", path });
    await encodeAudio({ ...job, format: "wav32", path: join(directory, "loud32.wav") });
    const raw = ["-f", "s16le", "-c:a", "pcm_s16le", "-"];
    const shortsOf = (name: string): number[] => {
      const bytes = execFileSync("ffmpeg", ["-v", "error", "-i", join(directory, name), ...raw]);
      return Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
    };
    const [ours, theirs] = [shortsOf("loud.wav"), shortsOf("loud32.wav")];
    expect(Math.max(...ours.map((sample, i) => Math.abs(sample - (theirs[i] as number))))).to.be.at.most(1);
    expect(Math.max(...ours)).to.equal(32767);
    expect(Math.min(...ours)).to.equal(-32768);
  });

  for (const format of AUDIO_FORMATS) {
    it(`writes ${format} as stereo at 48 kHz, with the right length and all tags that the format supports`, async () => {
      const tags = {
        title: "Über den Wolken 夜",
        prompt: "a waltz = for two; #1",
        lyrics: "[Verse]\nla la\n",
        bpm: 90,
        key: "Eb minor",
        seed: "7",
      };
      const path = join(directory, `song.${format}`);
      const { bytes } = await encodeAudio({ audio, samplesPerChannel, sampleRate, format, path, tags });
      expect(bytes).to.equal(readFileSync(path).length);
      expect(existsSync(`${path}.part`)).to.equal(false);
      const { streams, format: container } = probe(path);
      expect(streams).to.have.length(1);
      const { codec, container: name } = expected[format];
      expect(streams[0]).to.include({ codec_name: codec, sample_rate: "48000", channels: 2 });
      expect(container.format_name).to.equal(name);
      expect(Number(container.duration)).to.be.closeTo(samplesPerChannel / sampleRate, 0.2);
      const isWav = format.startsWith("wav");
      const isId3 = format === "mp3" || format === "aac";
      expect({ ...streams[0]?.tags, ...container.tags }).to.include({
        title: tags.title,
        comment: tags.prompt,
        ...(!isWav && { lyrics: tags.lyrics, SEED: "7" }),
        ...(!isWav && format !== "opus" && { REPLAYGAIN_TRACK_PEAK: "0.500000" }),
        ...(!isWav && (isId3 ? { TBPM: "90", TKEY: "Ebm" } : { BPM: "90", KEY: "Eb minor" })),
      });
    });
  }

  it("writes equal bytes for equal audio", async () => {
    await encode("wav", "one.wav");
    await encode("wav", "two.wav");
    expect(
      readFileSync(join(directory, "one.wav")).equals(readFileSync(join(directory, "two.wav"))),
    ).to.equal(true);
  });

  it("reports a full disk and leaves no file", async () => {
    symlinkSync("/dev/full", join(directory, "full.wav.part"));
    const failure = await encode("wav", "full.wav").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(EncodeError).and.include({ code: "DISK_FULL" });
    expect(existsSync(join(directory, "full.wav"))).to.equal(false);
    expect(existsSync(join(directory, "full.wav.part"))).to.equal(false);
  });

  it("passes on ffmpeg's error message", async () => {
    const failure = await encode("mp3", "no/such/folder.mp3").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(EncodeError).and.include({ code: "ENCODE_FAILED" });
    expect((failure as Error).message).to.include("No such file or directory");
  });

  it("reports that ffmpeg is missing, and writes wav without it", async () => {
    const path = process.env.PATH;
    process.env.PATH = directory;
    try {
      const failure = await encode("mp3", "missing.mp3").catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(FfmpegError).and.include({ code: "FFMPEG_MISSING" });
      expect((failure as Error).message)
        .to.include("ffmpeg")
        .and.include("wav");
      for (const format of ["wav", "wav32"] as const) {
        const finish = { fadeInSeconds: 1, normalizationDb: -3 };
        expect((await finished(format, "without.wav", finish)).bytes).to.be.greaterThan(100_000);
      }
    } finally {
      process.env.PATH = path;
    }
  });

  it("stops on abort with the signal's reason", async () => {
    const reason = new Error("enough");
    const failure = await encode("flac", "stopped.flac", AbortSignal.abort(reason)).catch(
      (error: unknown) => error,
    );
    expect(failure).to.equal(reason);
    expect(existsSync(join(directory, "stopped.flac.part"))).to.equal(false);
  });

  it("yields small chunks so that a long song does not block the event loop", () => {
    const pieces = [...interleave(twoTones(40_000), 40_000, { gain: 1, fadeIn: 0, fadeOut: 0 })];
    expect(pieces.length).to.be.greaterThan(1);
    expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).to.equal(40_000 * 2 * 4);
  });
});
