import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { dirname, join } from "node:path";
import { expect } from "chai";
import request from "supertest";
import { peakOf } from "../../../src/music/audio/decode.js";
import { AUDIO_FORMATS } from "../../../src/music/audio/formats.js";
import { oneSecondSong, serverForAll, shortSong } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("GET /v1/audio", () => {
  // The folder's name begins with a dot, because users may keep their songs below ~/.cache.
  const directory = join(temporaryDirectory(), ".songs");
  const server = serverForAll({}, directory);
  /** The server's audio folder. */
  let audioDirectory: string;
  const content = Buffer.from("0123456789");

  before(async () => {
    audioDirectory = server.service.audioFiles.directory;
    writeFileSync(join(audioDirectory, "song.mp3"), content);
    mkdirSync(join(audioDirectory, "folder"));
    const sibling = `${audioDirectory}_evil`;
    mkdirSync(sibling);
    writeFileSync(join(sibling, "secret.mp3"), "secret");
    writeFileSync(join(dirname(audioDirectory), "secret.mp3"), "secret");
    symlinkSync(join(sibling, "secret.mp3"), join(audioDirectory, "link.mp3"));
  });

  function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
    return fetch(`${server.url}/v1/audio?path=${encodeURIComponent(path)}`, { method, headers });
  }

  it("sends a file by absolute and by relative path", async () => {
    for (const path of [join(audioDirectory, "song.mp3"), "song.mp3"]) {
      const response = await get(path);
      expect(response.status).to.equal(200);
      expect(await response.text()).to.equal("0123456789");
      expect(response.headers.get("content-type")).to.equal("audio/mpeg");
      expect(response.headers.get("content-length")).to.equal("10");
      expect(response.headers.get("accept-ranges")).to.equal("bytes");
      expect(response.headers.get("cache-control")).to.equal("private, max-age=3600");
      expect(response.headers.get("etag")).to.be.a("string");
      expect(response.headers.get("last-modified")).to.be.a("string");
    }
  });

  const ranges: [range: string, status: number, body: string, contentRange: string | null][] = [
    ["bytes=2-4", 206, "234", "bytes 2-4/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=7-", 206, "789", "bytes 7-9/10"],
    ["bytes=-10", 206, "0123456789", "bytes 0-9/10"],
    ["bytes=-11", 200, "0123456789", null],
    ["bytes=-99999999999", 200, "0123456789", null],
    ["bytes=-0", 416, "", "bytes */10"],
    ["bytes=999999-", 416, "", "bytes */10"],
    ["bites=1-2", 200, "0123456789", null],
  ];
  for (const [range, status, body, contentRange] of ranges) {
    it(`answers Range ${range} with ${status}`, async () => {
      const response = await get("song.mp3", { Range: range });
      expect(response.status).to.equal(status);
      expect(await response.text()).to.equal(body);
      expect(response.headers.get("content-range")).to.equal(contentRange);
    });
  }

  it("answers HEAD with headers only", async () => {
    const response = await get("song.mp3", {}, "HEAD");
    expect(response.status).to.equal(200);
    expect(response.headers.get("content-length")).to.equal("10");
    expect(await response.text()).to.equal("");
  });

  it("answers 304 if the client has the file", async () => {
    const etag = (await get("song.mp3")).headers.get("etag") as string;
    await request(server.url).get("/v1/audio?path=song.mp3").set("If-None-Match", etag).expect(304);
  });

  const refusals: [what: string, path: () => string, status: number][] = [
    ["a path with .. out of the folder", () => "../secret.mp3", 403],
    ["an absolute path outside", () => "/etc/hostname", 403],
    ["a result URL with a path outside", () => "/v1/audio?path=%2Fetc%2Fhostname", 403],
    ["a symbolic link to a file outside", () => "link.mp3", 403],
    ["a sibling with the same prefix", () => join(`${audioDirectory}_evil`, "secret.mp3"), 403],
    ["a missing file outside", () => "/no/such/file.mp3", 403],
    ["a NUL character", () => "song.mp3\0", 400],
    ["a folder", () => "folder", 404],
    ["the audio folder itself", () => ".", 404],
    ["a missing file", () => "absent.mp3", 404],
    ["an over-long name", () => "x".repeat(5000), 404],
    ["an empty path", () => "", 404],
  ];
  for (const [what, path, status] of refusals) {
    it(`answers ${status} to ${what}`, async () => {
      const response = await get(path());
      expect(response.status).to.equal(status);
      expect(((await response.json()) as { detail: unknown }).detail).to.be.a("string");
    });
  }

  it("answers 400 without a path and with two paths", async () => {
    expect((await server.client.get("/v1/audio")).status).to.equal(400);
    expect((await server.client.get("/v1/audio?path=a&path=b")).status).to.equal(400);
  });

  it("the server survives a client that disconnects during a transfer", async () => {
    writeFileSync(join(audioDirectory, "large.wav"), Buffer.alloc(32 << 20));
    await new Promise<void>((resolve) => {
      const download = httpRequest(`${server.url}/v1/audio?path=large.wav`, (response) => {
        response.once("data", () => download.destroy());
        response.once("close", resolve);
        response.on("error", () => {});
      });
      download.on("error", () => {});
      download.end();
    });
    expect((await get("song.mp3")).status).to.equal(200);
  });

  const types: Record<(typeof AUDIO_FORMATS)[number], string> = {
    mp3: "audio/mpeg",
    flac: "audio/flac",
    opus: "audio/ogg",
    aac: "audio/aac",
    ogg: "audio/ogg",
    wav: "audio/wav",
    wav24: "audio/wav",
    wav32: "audio/wav",
  };
  for (const format of AUDIO_FORMATS) {
    it(`delivers a rendered song as ${format}`, async () => {
      const record = await server.client.makeOne({ ...oneSecondSong, audio_format: format });
      const response = await fetch(server.url + record.file);
      expect(response.status).to.equal(200);
      expect(response.headers.get("content-type")).to.equal(types[format]);
      expect(Number(response.headers.get("content-length"))).to.equal(
        (await response.arrayBuffer()).byteLength,
      );
    });
  }

  /** Stream properties from ffprobe, and interleaved samples decoded by ffmpeg. */
  function decoded(bytes: ArrayBuffer) {
    const path = join(directory, "heard");
    writeFileSync(path, Buffer.from(bytes));
    const probe = ["-v", "error", "-of", "json", "-show_streams", path];
    const [stream] = JSON.parse(execFileSync("ffprobe", probe, { encoding: "utf8" })).streams;
    const decode = ["-v", "error", "-i", path, "-f", "f32le", "-c:a", "pcm_f32le", "-"];
    const raw = execFileSync("ffmpeg", decode, { maxBuffer: 1 << 28 });
    const samples = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length));
    const { codec_name: codec, sample_rate: rate, bit_rate: bits } = stream;
    return { codec, rate: Number(rate), bits: Number(bits), samples };
  }

  const download = async (address: string) =>
    decoded(await (await fetch(server.url + address)).arrayBuffer());

  it("writes a song with the sample rate, level and fades of its request", async () => {
    const song = { ...shortSong, use_random_seed: false, seed: 3, normalization_db: -6, fade_in: 2 };
    const mp3 = await server.client.makeOne({
      ...song,
      audio_format: "mp3",
      mp3_bitrate: "128k",
      sample_rate: 44_100,
    });
    expect(mp3.warnings).to.deep.equal([]);
    expect(await download(mp3.file)).to.include({ codec: "mp3", rate: 44_100, bits: 128_000 });
    const fades = { fade_in_duration: 2, fade_out_duration: 20 };
    const wav = await server.client.makeOne({ ...song, ...fades, audio_format: "wav24" });
    expect(wav.warnings).to.deep.equal([
      "fade_out of 20 seconds was shortened to the length of the song, 10.00",
    ]);
    const { codec, samples } = await download(wav.file);
    expect(codec).to.equal("pcm_s24le");
    const plain = await download(
      (await server.client.makeOne({ ...song, fade_in: 0, audio_format: "wav32" })).file,
    );
    expect(peakOf(plain.samples)).to.be.closeTo(10 ** (-6 / 20), 1e-4);
    const frames = samples.length / 2;
    for (const frame of [0, 48_000, frames / 2, frames - 1]) {
      const gain = Math.min(1, frame / 96_000) * (1 - frame / frames);
      expect(samples[2 * frame]).to.be.closeTo(gain * (plain.samples[2 * frame] as number), 1e-3);
    }
  });

  it("fades a song that still sounds at its end over half a second, unless fade_out is 0; tags and rows have its level", async () => {
    const song = { ...shortSong, use_random_seed: false, seed: 3 };
    const whole = await server.client.makeOne({ ...song, fade_out: 0, audio_format: "wav32" });
    const [faded, kept] = [
      await download((await server.client.makeOne({ ...song, audio_format: "wav32" })).file),
      await download(whole.file),
    ].map(({ samples }) => samples) as [Float32Array, Float32Array];
    const fade = 2 * 24_000;
    expect(faded.subarray(0, -fade)).to.deep.equal(kept.subarray(0, -fade));
    expect(peakOf(kept.subarray(-960))).to.be.above(0.01);
    expect(faded.at(-1)).to.equal(0);
    expect(faded.at(-fade / 2)).to.be.closeTo((kept.at(-fade / 2) as number) / 2, 1e-4);
    const converted = join(directory, "converted.flac");
    const flac = await fetch(`${server.url}${whole.file}&format=flac&loudness=-23&normalization_db=0`);
    writeFileSync(converted, Buffer.from(await flac.arrayBuffer()));
    const probe = ["-v", "error", "-of", "json", "-show_format", converted];
    const { tags } = JSON.parse(execFileSync("ffprobe", probe, { encoding: "utf8" })).format;
    expect(tags.REPLAYGAIN_TRACK_GAIN).to.equal("5.00 dB");
    const { body } = await server.client.get("/v1/tasks?limit=2");
    const rows: { loudness: number; peak_level: number }[] = body.data.tasks.flatMap(
      ({ songs }: { songs: object[] }) => songs,
    );
    for (const { loudness, peak_level } of rows) {
      expect(loudness).to.be.within(-30, -5);
      expect(peak_level).to.be.closeTo(peakOf(kept), 1e-3);
    }
  });

  it("converts a downloaded song; rejects invalid parameters, and parameters without a format", async () => {
    const { file } = await server.client.makeOne({ ...oneSecondSong, audio_format: "wav" });
    expect(await download(`${file}&format=mp3&mp3_bitrate=192`)).to.include({ codec: "mp3", bits: 192_000 });
    expect(await download(`${file}&format=ogg&sample_rate=44100`)).to.include({
      codec: "vorbis",
      rate: 44_100,
    });
    const { codec, samples } = await download(`${file}&format=wav24&normalization_db=-12&fade_out=10`);
    expect(codec).to.equal("pcm_s24le");
    expect(peakOf(samples)).to.be.within(0.001, 0.2513);
    expect(samples.at(-1)).to.be.closeTo(0, 1e-4);
    for (const [query, detail] of [
      ["mp3_bitrate=192", "mp3_bitrate requires the parameter format, which converts the song"],
      ["format=opus&sample_rate=44100", "sample_rate must be 48000 for audio_format opus, got 44100"],
      ["format=mp3&mp3_bitrate=90", /^mp3_bitrate must be one of 32k, .*320k, got "90"$/],
      ["format=mp3&sample_rate=12345", /^sample_rate must be one of 8000, .*96000, got "12345"$/],
      ["format=m4p", /^format must be one of mp3, /],
    ] as const) {
      const { status, body } = await server.client.get(`${file}&${query}`);
      expect([status, body.detail]).to.satisfy(
        ([code, text]: [number, string]) =>
          code === 400 && (typeof detail === "string" ? text === detail : detail.test(text)),
        `${query}: ${body.detail}`,
      );
    }
  });
});
