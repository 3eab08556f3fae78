import { truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import express from "express";
import { sendResult } from "../../../src/music/acestep-cpp/result.js";
import { AudioFiles } from "../../../src/music/audio/audio-files.js";
import { latentsHeader } from "../../../src/music/audio/latents-file.js";
import type { SongFile } from "../../../src/music/queue/store.js";
import { listenLocally } from "../../local-server.js";
import { makeResult, makeTask, temporaryDirectory } from "../tasks.js";
import { partsOf } from "./ace-client.js";

const FRAMES = 6000;
const WAV_BYTES = 44 + 4 * 48_000 * 240;

describe("results for acestep.cpp's clients", () => {
  const directory = temporaryDirectory();
  const audioFiles = new AudioFiles(directory);

  function songOf(index: number, bytes: number): SongFile {
    const [name, latents] = [`song-${index}.wav`, `song-${index}.safetensors`];
    writeFileSync(join(directory, name), `song ${index}`);
    truncateSync(join(directory, name), bytes);
    const header = latentsHeader(FRAMES, 64);
    writeFileSync(join(directory, latents), header);
    truncateSync(join(directory, latents), header.length + FRAMES * 256);
    return { name, bytes, latents: { name: latents, bytes: header.length + FRAMES * 256 } };
  }

  async function serve(songs: SongFile[], read: (response: Response) => Promise<void>): Promise<void> {
    const task = makeTask({ state: "succeeded", result: makeResult({ audioFiles: songs, analysis: null }) });
    const app = express().get("/", (_request, response) =>
      sendResult(response, task, audioFiles, new AbortController().signal),
    );
    const server = createServer(app);
    const { url } = await listenLocally(server);
    try {
      await read(await fetch(url));
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it("a result has the audio and the latents of each song, in order", async () => {
    await serve([songOf(0, 100), songOf(1, 100_000)], async (response) => {
      const body = Buffer.from(await response.arrayBuffer());
      expect(Number(response.headers.get("content-length"))).to.equal(body.length);
      const parts = partsOf({ status: 200, headers: response.headers, body });
      expect(parts.map(({ type, bytes }) => [type, bytes.length])).to.deep.equal([
        ["audio/wav", 100],
        ["application/octet-stream", FRAMES * 256],
        ["audio/wav", 100_000],
        ["application/octet-stream", FRAMES * 256],
      ]);
      expect(parts[2]?.bytes.toString("utf8", 0, 6)).to.equal("song 1");
    });
  });

  it("nine songs of four minutes are streamed: their size does not appear in memory", async () => {
    const songs = Array.from({ length: 9 }, (_, index) => songOf(index, WAV_BYTES));
    await serve(songs, async (response) => {
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      let bytes = 0;
      let most = 0;
      for (let chunk = 0; ; chunk++) {
        const { value, done } = await reader.read();
        if (done) break;
        bytes += value.length;
        if (chunk % 100 === 0) most = Math.max(most, process.memoryUsage().arrayBuffers);
      }
      expect(bytes).to.be.above(9 * (WAV_BYTES + FRAMES * 256));
      expect(most).to.be.below(5 * WAV_BYTES);
    });
  });
});
