import { connect } from "node:net";
import { expect } from "chai";
import { shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

/** A model step of this song takes longer than a server may take to exit. */
const hugeSong = { ...shortSong, audio_duration: 600, inference_steps: 20, batch_size: 4 };

describe("exit and restart of a server", () => {
  afterEach(endServed);

  it("an exiting server waits for no model step or incomplete request, and requeues the task @slow", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.start(directory);
    const id = await server.client.submit(hugeSong);
    await server.client.untilStarted(id);
    const halfSent = connect(Number(new URL(server.client.url).port), "127.0.0.1");
    halfSent.on("error", () => {});
    halfSent.write("POST /release_task HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{");
    // Exit code 0 means a clean exit in time. A server that the watchdog kills has no exit code.
    expect(await server.end("SIGTERM")).to.equal(0);

    const second = await ServedProcess.startStub(directory, 60_000);
    await second.client.untilStarted(id);
    expect(second.log).to.not.include("task was interrupted");
    expect(await second.end("SIGKILL")).to.equal(null);
  });

  it("a server with an uncaught error logs one line, requeues the task, and exits with 1 @slow", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.startStub(directory, 60_000);
    const id = await server.client.submit(shortSong);
    await server.client.untilStarted(id);
    expect(await server.end("SIGUSR2")).to.equal(1);
    expect(server.log.split("\n").filter((line) => line.includes("an uncaught error"))).to.have.length(1);

    const second = await ServedProcess.startStub(directory, 0);
    expect((await second.client.finished(id)).item.status).to.equal(1);
    expect(second.log).to.not.include("task was interrupted");
    // SIGHUP (terminal closed) is a clean stop.
    expect(await second.end("SIGHUP")).to.equal(0);
  });

  it("a task does not fail even if its server is killed three times @slow", async () => {
    const directory = temporaryDirectory();
    let server = await ServedProcess.startStub(directory, 60_000);
    const id = await server.client.submit(shortSong);
    for (let kill = 0; kill < 3; kill++) {
      await server.client.untilStarted(id);
      await server.end("SIGKILL");
      server = await ServedProcess.startStub(directory, kill < 2 ? 60_000 : 0);
      expect((await server.client.query(id)).item.status).to.equal(0);
    }
    expect((await server.client.finished(id)).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
