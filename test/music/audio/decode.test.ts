import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { DecodeError, decodeAudio, measureAudio } from "../../../src/music/audio/decode.js";
import { encodeAudio } from "../../../src/music/audio/encode.js";
import { FfmpegError } from "../../../src/music/audio/ffmpeg.js";
import { listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";
import { RECORDING_FORMATS, runFfmpeg, writeRecording, writeSilence } from "./recordings.js";

const SAMPLE_RATE = 48_000;

describe("decoding of recordings", () => {
  const directory = temporaryDirectory();
  const at = (name: string): string => join(directory, name);
  const decode = (path: string, maxSeconds = 600) => decodeAudio({ path, name: "src_audio", maxSeconds });

  async function failureOf(path: string, maxSeconds = 600): Promise<DecodeError> {
    const failure = await decode(path, maxSeconds).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(DecodeError);
    return failure as DecodeError;
  }

  /** Amplitude of the frequency `pitch` in the middle second of a channel. */
  function amplitude(channel: Float32Array, pitch: number): number {
    const start = Math.floor(channel.length / 2) - SAMPLE_RATE / 2;
    let [real, imaginary] = [0, 0];
    for (let i = 0; i < SAMPLE_RATE; i++) {
      const angle = (2 * Math.PI * pitch * i) / SAMPLE_RATE;
      real += (channel[start + i] as number) * Math.cos(angle);
      imaginary += (channel[start + i] as number) * Math.sin(angle);
    }
    return (2 * Math.hypot(real, imaginary)) / SAMPLE_RATE;
  }

  for (const format of RECORDING_FORMATS) {
    for (const [sampleRate, channels] of [
      [22_050, 1],
      [44_100, 2],
    ] as const) {
      it(`reads ${format} at ${sampleRate} Hz, channels: ${channels}${channels === 2 ? "" : " @slow"}`, async () => {
        const path = writeRecording(at(`tone-${channels}.${format}`), { seconds: 2, sampleRate, channels });
        const audio = await decode(path);
        const frames = audio.length / 2;
        expect(frames / SAMPLE_RATE).to.be.closeTo(2, 0.1);
        const [left, right] = [audio.subarray(0, frames), audio.subarray(frames)];
        expect(amplitude(left, 220)).to.be.closeTo(0.25, 0.02);
        expect(amplitude(right, channels === 1 ? 220 : 330)).to.be.closeTo(0.25, 0.02);
      });
    }
  }

  it("returns the exact samples of a lossless file at 48 kHz", async () => {
    const audio = Float32Array.from({ length: 2 * 70_001 }, (_, i) => Math.fround(Math.sin(i * i) * 0.9));
    const path = at("exact.wav");
    const samplesPerChannel = audio.length / 2;
    await encodeAudio({ audio, samplesPerChannel, sampleRate: SAMPLE_RATE, format: "wav32", path });
    expect(Buffer.from((await decode(path)).buffer).equals(Buffer.from(audio.buffer))).to.equal(true);
  });

  it("keeps the first two of six channels, and clips samples to -1 .. 1", async () => {
    const values = ["0.5", "-0.25", "0.75", "0.1", "3", "0.2"];
    const source = (channels: string[], layout: string) => [
      "-f",
      "lavfi",
      "-i",
      `aevalsrc=${channels.join("|")}:s=48000:d=1:c=${layout}`,
      "-c:a",
      "pcm_f32le",
    ];
    runFfmpeg([...source(values, "5.1"), at("six.wav")]);
    const six = await decode(at("six.wav"));
    expect([six[100], six[48_100]]).to.deep.equal([0.5, -0.25]);
    runFfmpeg([...source(["3", "-3"], "stereo"), at("loud.wav")]);
    const loud = await decode(at("loud.wav"));
    expect([loud[100], loud[48_100]]).to.deep.equal([1, -1]);
  });

  it("measures the length that it decodes, and the absolute peak of the louder channel", async () => {
    const source = ["-f", "lavfi", "-i", "aevalsrc=0.25|-0.5:s=48000:d=1", "-c:a", "pcm_f32le"];
    runFfmpeg([...source, at("uneven.wav")]);
    const measures = await measureAudio({ path: at("uneven.wav"), name: "x", maxSeconds: 600 });
    expect(measures).to.deep.equal({ seconds: 1, peak: 0.5 });
    const path = writeRecording(at("uneven.mp3"), { seconds: 1, sampleRate: 44_100 });
    const { seconds } = await measureAudio({ path, name: "x", maxSeconds: 600 });
    expect(seconds).to.equal((await decode(path)).length / 2 / SAMPLE_RATE);
  });

  it("decodes the audio of a file with an embedded picture", async () => {
    const path = writeRecording(at("cover.mp3"), { seconds: 1 });
    runFfmpeg(["-f", "lavfi", "-i", "color=red:s=16x16", "-frames:v", "1", at("cover.png")]);
    const streams = ["-map", "0", "-map", "1", "-c", "copy", "-disposition:v", "attached_pic"];
    runFfmpeg(["-i", path, "-i", at("cover.png"), ...streams, at("covered.mp3")]);
    expect((await decode(at("covered.mp3"))).length).to.be.closeTo(2 * SAMPLE_RATE, 5000);
  });

  it("reads files whose names look like options or URLs", async () => {
    const path = writeRecording(at("tone.wav"), { seconds: 1 });
    for (const name of ["-y.wav", "con:cat|x.wav", "file:a b%20?.wav"]) {
      copyFileSync(path, at(name));
      expect((await decode(at(name))).length, name).to.equal(2 * SAMPLE_RATE);
    }
  });

  it("rejects a file that is not audio without echoing its content", async () => {
    writeFileSync(at("song.mp3"), "top secret words\n".repeat(500));
    writeFileSync(at("noise.wav"), Buffer.from(Array.from({ length: 9999 }, (_, i) => (i * i * 31) % 251)));
    writeFileSync(at("nothing.flac"), "");
    runFfmpeg(["-f", "lavfi", "-i", "color=red:s=16x16:d=1", "-c:v", "mpeg4", at("silent.mp4")]);
    for (const name of ["song.mp3", "noise.wav", "nothing.flac", "silent.mp4"]) {
      const { code, message } = await failureOf(at(name));
      expect([code, message], name).to.deep.equal(["UNDECODABLE", "src_audio contains no decodable audio"]);
    }
  });

  it("reports a missing file", async () => {
    const { code, message } = await failureOf(at("absent.wav"));
    expect([code, message]).to.deep.equal(["NOT_FOUND", "src_audio does not exist"]);
  });

  it("rejects a file without samples", async () => {
    runFfmpeg(["-f", "lavfi", "-i", "anullsrc=r=48000", "-t", "0", at("empty.wav")]);
    expect((await failureOf(at("empty.wav"))).message).to.match(
      /^src_audio (is empty|contains no decodable audio)/,
    );
  });

  it("opens no other file that the recording refers to", async () => {
    const target = writeRecording(at("target.wav"), { seconds: 1 });
    const playlists = {
      "list.m3u8": `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://${target}\n#EXT-X-ENDLIST\n`,
      "list.mp3": `ffconcat version 1.0\nfile '${target}'\n`,
      "list.txt": `file '${target}'\n`,
    };
    for (const [name, text] of Object.entries(playlists)) {
      writeFileSync(at(name), text);
      expect((await failureOf(at(name))).code, name).to.equal("UNDECODABLE");
    }
  });

  it("connects to no server that the recording refers to", async () => {
    let connections = 0;
    const server = createServer((_request, response) => response.end()).on("connection", () => connections++);
    const url = `${(await listenLocally(server)).url}/song.mp3`;
    const playlists = {
      "remote.m3u8": `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${url}\n#EXT-X-ENDLIST\n`,
      "remote.mp3": `ffconcat version 1.0\nfile '${url}'\n`,
      "remote.mpd": `<MPD><Period><AdaptationSet><BaseURL>${url}</BaseURL></AdaptationSet></Period></MPD>`,
      "remote.mov": Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from(`moovrmrardrfurl ${url}`)]),
    };
    for (const [name, content] of Object.entries(playlists)) {
      writeFileSync(at(name), content);
      expect((await failureOf(at(name))).code, name).to.equal("UNDECODABLE");
    }
    expect(connections).to.equal(0);
    server.close();
  });

  /** Writes 100,000 silent 16-bit samples as WAV. The header states the given rate and channels. */
  function writeWave(name: string, sampleRate: number, channels: number): string {
    const header = Buffer.alloc(44);
    header.write("RIFF\xff\xff\xff\xffWAVEfmt ", "latin1");
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(1, 20);
    header.writeUInt16LE(channels, 22);
    header.writeUInt32LE(sampleRate, 24);
    header.writeUInt32LE(0xffffffff, 28);
    header.writeUInt16LE((2 * channels) & 0xffff, 32);
    header.writeUInt16LE(16, 34);
    header.write("data\xf0\xff\xff\xff", 36, "latin1");
    writeFileSync(at(name), Buffer.concat([header, Buffer.alloc(200_000)]));
    return at(name);
  }

  it("rejects a file whose header would need more memory or time than any song", async () => {
    const others = childrenNow();
    for (const [sampleRate, channels] of [
      [1, 2], // After resampling from 1 Hz, the file would take gigabytes.
      [0x7fffffff, 2],
      [1_999_999_973, 1],
      [48_000, 65_535],
      [48_000, 512],
    ] as const) {
      const path = writeWave(`${sampleRate}-${channels}.wav`, sampleRate, channels);
      const { code, message } = await failureOf(path, 5);
      expect(code, path).to.be.oneOf(["UNDECODABLE", "EMPTY", "TOO_LONG"]);
      expect(message, path).to.match(/^src_audio [^\n]+$/);
    }
    const flac = readFileSync(writeSilence(at("wide.flac"), 1));
    // Sets block, frame, rate, channels and length to the largest values that a FLAC header can hold.
    flac.fill(0xff, 8, 26);
    writeFileSync(at("wide.flac"), flac);
    expect((await failureOf(at("wide.flac"))).message).to.match(/^src_audio [^\n]+$/);
    expect(childrenNow().filter((id) => !others.includes(id))).to.deep.equal([]);
  });

  /** Ids of running child processes. */
  function childrenNow(): string[] {
    if (process.platform !== "linux") return [];
    return readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean);
  }

  it("stops decoding a long recording at the limit", async () => {
    const path = writeSilence(at("a minute.flac"), 60);
    const { code, message } = await failureOf(path, 5);
    expect([code, message]).to.deep.equal(["TOO_LONG", "src_audio lasts longer than 5 seconds"]);
    expect((await decode(writeSilence(at("five seconds.flac"), 5), 5)).length).to.equal(10 * SAMPLE_RATE);
    const beginning = await decodeAudio({ path, name: "x", maxSeconds: 5, beyondMaximum: "cut" });
    expect(beginning.length).to.equal(10 * SAMPLE_RATE);
  });

  it("does not count a lossy file's padding as part of its duration", async () => {
    const samplesPerChannel = 2 * SAMPLE_RATE;
    const audio = new Float32Array(2 * samplesPerChannel);
    const song = at("song.aac");
    await encodeAudio({ audio, samplesPerChannel, sampleRate: SAMPLE_RATE, format: "aac", path: song });
    const low = writeRecording(at("low.aac"), { seconds: 2, sampleRate: 22_050 });
    const boxed = writeRecording(at("boxed.m4a"), { seconds: 2 });
    for (const path of [song, low, boxed]) {
      expect((await decode(path)).length, path).to.be.greaterThan(4 * SAMPLE_RATE);
      expect((await decode(path, 2)).length, path).to.equal(4 * SAMPLE_RATE);
      expect((await measureAudio({ path, name: "x", maxSeconds: 2 })).seconds, path).to.equal(2);
      expect((await failureOf(path, 1.8)).code, path).to.equal("TOO_LONG");
    }
  });

  it("decoding stops on abort", async () => {
    const path = writeSilence(at("ten minutes.flac"), 600);
    const reason = new Error("enough");
    const controller = new AbortController();
    const decoding = decodeAudio({ path, name: "x", maxSeconds: 600, signal: controller.signal });
    controller.abort(reason);
    expect(await decoding.catch((error: unknown) => error)).to.equal(reason);
    const aborted = decodeAudio({ path, name: "x", maxSeconds: 600, signal: AbortSignal.abort(reason) });
    expect(await aborted.catch((error: unknown) => error)).to.equal(reason);
  });

  it("reports that ffmpeg is missing", async () => {
    const { PATH } = process.env;
    process.env.PATH = directory;
    try {
      const failure = await decodeAudio({ path: at("tone.wav"), name: "x", maxSeconds: 600 }).catch(
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(FfmpegError).and.include({ code: "FFMPEG_MISSING" });
      expect((failure as Error).message)
        .to.include("install it or run")
        .and.include("no recording can be read");
    } finally {
      process.env.PATH = PATH;
    }
  });
});
