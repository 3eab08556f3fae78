import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { dirname, join } from "node:path";
import { expect } from "chai";
import request from "supertest";
import { AUDIO_FORMATS } from "../../../src/music/request/schema.js";
import { type LiveServer, shortSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("GET /v1/audio", () => {
  let server: LiveServer;
  let directory: string;
  /** The folder that the server may read. */
  let audioDirectory: string;
  const content = Buffer.from("0123456789");

  before(async () => {
    directory = temporaryDirectory();
    server = await startLiveServer(directory);
    audioDirectory = server.service.audioFiles.directory;
    writeFileSync(join(audioDirectory, "song.mp3"), content);
    mkdirSync(join(audioDirectory, "folder"));
    const sibling = `${audioDirectory}_evil`;
    mkdirSync(sibling);
    writeFileSync(join(sibling, "secret.mp3"), "secret");
    writeFileSync(join(dirname(audioDirectory), "secret.mp3"), "secret");
    symlinkSync(join(sibling, "secret.mp3"), join(audioDirectory, "link.mp3"));
  });

  after(() => server.close());

  function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
    return fetch(`${server.url}/v1/audio?path=${encodeURIComponent(path)}`, { method, headers });
  }

  it("sends a whole file, by absolute and by relative path", async () => {
    for (const path of [join(audioDirectory, "song.mp3"), "song.mp3"]) {
      const response = await get(path);
      expect(response.status).to.equal(200);
      expect(await response.text()).to.equal("0123456789");
      expect(response.headers.get("content-type")).to.equal("audio/mpeg");
      expect(response.headers.get("content-length")).to.equal("10");
      expect(response.headers.get("accept-ranges")).to.equal("bytes");
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

  it("answers HEAD with the headers alone", async () => {
    const response = await get("song.mp3", {}, "HEAD");
    expect(response.status).to.equal(200);
    expect(response.headers.get("content-length")).to.equal("10");
    expect(await response.text()).to.equal("");
  });

  it("answers 304 to a client that has the file", async () => {
    const etag = (await get("song.mp3")).headers.get("etag") as string;
    await request(server.url).get("/v1/audio?path=song.mp3").set("If-None-Match", etag).expect(304);
  });

  const refusals: [what: string, path: () => string, status: number][] = [
    ["a way out of the folder", () => "../secret.mp3", 403],
    ["an absolute path outside", () => "/etc/hostname", 403],
    ["a symbolic link to the outside", () => "link.mp3", 403],
    ["a sibling whose name begins alike", () => join(`${audioDirectory}_evil`, "secret.mp3"), 403],
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

  it("answers 400 without a path, and to two", async () => {
    expect((await server.client.get("/v1/audio")).status).to.equal(400);
    expect((await server.client.get("/v1/audio?path=a&path=b")).status).to.equal(400);
  });

  it("survives a client that hangs up in the middle", async () => {
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
    wav: "audio/wav",
    wav32: "audio/wav",
  };
  for (const format of AUDIO_FORMATS) {
    it(`delivers a rendered song as ${format}`, async () => {
      const record = await server.client.makeOne({ ...shortSong, audio_format: format });
      const response = await fetch(server.url + record.file);
      expect(response.status).to.equal(200);
      expect(response.headers.get("content-type")).to.equal(types[format]);
      expect(Number(response.headers.get("content-length"))).to.equal(
        (await response.arrayBuffer()).byteLength,
      );
    });
  }
});
