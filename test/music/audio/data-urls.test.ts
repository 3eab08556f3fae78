import { truncateSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { DataUrls } from "../../../src/music/audio/data-urls.js";
import { listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("songs that are sent as data URLs", () => {
  const directory = temporaryDirectory();

  it("a data URL contains the bytes of its file, whatever the length", async () => {
    const lengths = [0, 1, 2, 3, 49_151, 49_152, 49_153, 200_000];
    const contents = lengths.map((length) => Buffer.from(Array.from({ length }, (_, i) => (i * 7) % 256)));
    const paths = contents.map((content, index) => {
      const path = join(directory, `${index}.mp3`);
      writeFileSync(path, content);
      return path;
    });
    const songs = await DataUrls.open(paths);
    const body = JSON.stringify({ words: "ä / 歌", urls: songs.urls, last: true });
    const sent = new PassThrough();
    const [, received] = await Promise.all([songs.send(body, sent, true), text(sent)]);
    await songs.close();
    expect(Buffer.byteLength(received)).to.equal(songs.byteLength(body));
    const { words, urls, last } = JSON.parse(received);
    expect([words, last]).to.deep.equal(["ä / 歌", true]);
    for (const [index, url] of (urls as string[]).entries()) {
      const [head, data = ""] = url.split(",");
      expect(head).to.equal("data:audio/mpeg;base64");
      expect(Buffer.from(data, "base64").equals(contents[index] as Buffer)).to.equal(true);
    }
  });

  it("the response is aborted if a file has been truncated", async () => {
    const path = join(directory, "short.mp3");
    writeFileSync(path, Buffer.alloc(100_000));
    const songs = await DataUrls.open([path]);
    truncateSync(path, 60_000);
    const sent = new PassThrough().resume();
    const failure = await songs.send(songs.urls.join(), sent, true).catch((error: Error) => error);
    await songs.close();
    expect((failure as Error).message).to.include("shrank below 100000 bytes");
    expect(sent.destroyed).to.equal(true);
  });

  it("the response buffers only a few pieces for a slow reader, however long the song is", async () => {
    const path = join(directory, "long.wav");
    writeFileSync(path, "");
    truncateSync(path, 2 ** 30);
    const responses: ServerResponse[] = [];
    const server = createServer((_request, response) => {
      responses.push(response);
      void DataUrls.open([path]).then(async (songs) => {
        await songs.send(songs.urls.join(), response, true).catch(() => {});
        await songs.close();
      });
    });
    const { port } = await listenLocally(server);
    const readers = Array.from({ length: 24 }, (): Socket => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.pause().write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      return socket;
    });
    const written = () => responses.reduce((sum, { socket }) => sum + (socket?.bytesWritten ?? 0), 0);
    for (let last = -1; responses.length < 24 || written() !== last; ) {
      last = written();
      await sleep(300);
    }
    for (const { writableLength } of responses) expect(writableLength).to.be.below(2 * 65_536);
    for (const reader of readers) reader.destroy();
    server.close();
  });
});
