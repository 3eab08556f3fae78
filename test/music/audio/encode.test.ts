import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { EncodeError, encodeAudio, interleave } from "../../../src/music/audio/encode.js";
import { AUDIO_FORMATS, type AudioFormat } from "../../../src/music/request/schema.js";
import { temporaryDirectory } from "../tasks.js";

const sampleRate = 48_000;

/** A second and a bit of a different tone in each ear, planar. */
function twoTones(samplesPerChannel = 50_000): Float32Array {
  const audio = new Float32Array(2 * samplesPerChannel);
  for (let i = 0; i < samplesPerChannel; i++) {
    audio[i] = 0.5 * Math.sin((2 * Math.PI * 440 * i) / sampleRate);
    audio[samplesPerChannel + i] = 0.25 * Math.sin((2 * Math.PI * 660 * i) / sampleRate);
  }
  return audio;
}

interface Probe {
  streams: { codec_name: string; sample_rate: string; channels: number; sample_fmt: string }[];
  format: { format_name: string; duration: string };
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
  wav: { codec: "pcm_s16le", container: "wav" },
  wav32: { codec: "pcm_f32le", container: "wav" },
};

describe("encodeAudio", () => {
  const directory = temporaryDirectory();
  const audio = twoTones();
  const samplesPerChannel = audio.length / 2;

  function encode(format: AudioFormat, name: string, signal?: AbortSignal): Promise<number> {
    return encodeAudio({ audio, samplesPerChannel, sampleRate, format, path: join(directory, name), signal });
  }

  for (const format of AUDIO_FORMATS) {
    it(`writes ${format} as stereo at 48 kHz and of the right length`, async () => {
      const path = join(directory, `song.${format}`);
      expect(await encode(format, `song.${format}`)).to.equal(readFileSync(path).length);
      const { streams, format: container } = probe(path);
      expect(streams).to.have.length(1);
      expect(streams[0]).to.include({
        codec_name: expected[format].codec,
        sample_rate: "48000",
        channels: 2,
      });
      expect(container.format_name).to.equal(expected[format].container);
      expect(Number(container.duration)).to.be.closeTo(samplesPerChannel / sampleRate, 0.08);
      expect(existsSync(`${path}.part`)).to.equal(false);
    });
  }

  it("keeps every sample, left and right, in wav32", async () => {
    await encode("wav32", "exact.wav");
    const args = ["-v", "error", "-i", join(directory, "exact.wav"), "-f", "f32le", "-"];
    const bytes = execFileSync("ffmpeg", args, { maxBuffer: 1 << 26 });
    const decoded = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    expect(decoded.length).to.equal(2 * samplesPerChannel);
    for (const frame of [0, 1, 16_383, 16_384, samplesPerChannel - 1]) {
      expect(decoded[2 * frame]).to.equal(audio[frame]);
      expect(decoded[2 * frame + 1]).to.equal(audio[samplesPerChannel + frame]);
    }
  });

  it("rounds and clips to 16 bits in wav, as ffmpeg does", async () => {
    const loud = Float32Array.from({ length: 2 * 1000 }, (_, i) => 1.2 * Math.sin(i / 7));
    const path = join(directory, "loud.wav");
    const job = { audio: loud, samplesPerChannel: 1000, sampleRate };
    await encodeAudio({ ...job, format: "wav", path });
    await encodeAudio({ ...job, format: "wav32", path: join(directory, "loud32.wav") });
    const raw = ["-f", "s16le", "-c:a", "pcm_s16le", "-"];
    const samplesOf = (name: string): number[] => {
      const bytes = execFileSync("ffmpeg", ["-v", "error", "-i", join(directory, name), ...raw]);
      return Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
    };
    const [ours, theirs] = [samplesOf("loud.wav"), samplesOf("loud32.wav")];
    expect(Math.max(...ours.map((sample, i) => Math.abs(sample - (theirs[i] as number))))).to.be.at.most(1);
    expect(Math.max(...ours)).to.equal(32767);
    expect(Math.min(...ours)).to.equal(-32768);
  });

  it("gives the same bytes for the same audio", async () => {
    await encode("wav", "one.wav");
    await encode("wav", "two.wav");
    expect(
      readFileSync(join(directory, "one.wav")).equals(readFileSync(join(directory, "two.wav"))),
    ).to.equal(true);
  });

  it("says that the disk is full and leaves nothing behind", async () => {
    symlinkSync("/dev/full", join(directory, "full.wav.part"));
    const failure = await encode("wav", "full.wav").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(EncodeError).and.include({ code: "DISK_FULL" });
    expect(existsSync(join(directory, "full.wav"))).to.equal(false);
    expect(existsSync(join(directory, "full.wav.part"))).to.equal(false);
  });

  it("passes on what ffmpeg complains of", async () => {
    const failure = await encode("mp3", "no/such/folder.mp3").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(EncodeError).and.include({ code: "ENCODE_FAILED" });
    expect((failure as Error).message).to.include("No such file or directory");
  });

  it("says which program is missing, and writes wav without it", async () => {
    const path = process.env.PATH;
    process.env.PATH = directory;
    try {
      const failure = await encode("mp3", "missing.mp3").catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(EncodeError).and.include({ code: "FFMPEG_MISSING" });
      expect((failure as Error).message)
        .to.include("ffmpeg")
        .and.include("wav");
      expect(await encode("wav", "without.wav")).to.be.greaterThan(100_000);
    } finally {
      process.env.PATH = path;
    }
  });

  it("stops when it is told to, with the reason given", async () => {
    const reason = new Error("enough");
    const failure = await encode("flac", "stopped.flac", AbortSignal.abort(reason)).catch(
      (error: unknown) => error,
    );
    expect(failure).to.equal(reason);
    expect(existsSync(join(directory, "stopped.flac.part"))).to.equal(false);
  });

  it("hands out small pieces so that nothing waits for a long song", () => {
    const pieces = [...interleave(twoTones(40_000), 40_000)];
    expect(pieces.length).to.be.greaterThan(1);
    expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).to.equal(40_000 * 2 * 4);
  });
});
