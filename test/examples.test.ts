import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { BridgeClient, eventually } from "./city/bridge.js";
import { endServed, ServedProcess } from "./e2e/served-process.js";
import { temporaryDirectory } from "./music/tasks.js";

const examples = fileURLToPath(new URL("../examples", import.meta.url));

async function run(example: string, ...args: string[]): Promise<string> {
  const options = { env: { ...process.env, SVC_DEVICE: "cpu" } };
  return (await promisify(execFile)(process.execPath, [join(examples, example), ...args], options)).stdout;
}

describe("programs in examples/", () => {
  afterEach(endServed);

  it("all examples are tested here", () => {
    const names = readdirSync(examples).filter((name) => name !== "README.md");
    // test/package.test.ts tests embed.cjs.
    const embedding = ["embed.cjs", "embed.mjs", "native.mjs", "router.mjs", "worker.mjs"];
    expect(names).to.have.members(["build-town.mjs", "client.mjs", "follow.mjs", ...embedding]);
  });

  it("embed.mjs makes a song without a server", async () => {
    const file = join(temporaryDirectory(), "song.mp3");
    expect(await run("embed.mjs", "a slow waltz", file)).to.match(/seed \d+, \d+ bpm/);
    expect(statSync(file).size).to.be.above(100_000);
  });

  it("native.mjs plans, renders and encodes with the native core only", async () => {
    const file = join(temporaryDirectory(), "song.wav");
    expect(await run("native.mjs", "a slow waltz", file)).to.equal(
      "planned 50 audio codes\n480000 samples per channel, encoded to 50 audio codes\n",
    );
    const { stdout } = await promisify(execFile)("ffprobe", ["-hide_banner", "-show_streams", file]);
    expect(stdout).to.match(/codec_name=pcm_f32le[\s\S]*sample_rate=48000\nchannels=2[\s\S]*duration=10\.0/);
  });

  for (const example of ["router.mjs", "worker.mjs"]) {
    it(`${example} serves a song to client.mjs, and exits cleanly on SIGTERM`, async () => {
      const directory = temporaryDirectory();
      const host = spawn(process.execPath, [join(examples, example), "0"], {
        env: { ...process.env, SVC_DEVICE: "cpu", SVC_HOME: directory },
        stdio: ["ignore", "pipe", "inherit"],
      });
      const line = await new Promise<string>((resolve, reject) => {
        createInterface(host.stdout).once("line", resolve);
        host.once("exit", (code) => reject(new Error(`${example} ended with exit code ${code}`)));
      });
      const file = join(directory, "song.mp3");
      expect(await run("client.mjs", "a slow waltz", file, line.replace("music on ", ""))).to.contain(
        "100 %",
      );
      expect(statSync(file).size).to.be.above(100_000);
      const ended = once(host, "exit");
      host.kill("SIGTERM");
      expect(await ended).to.deep.equal([0, null]);
    });
  }

  it("follow.mjs makes a song on a server, and build-town.mjs builds a town with citizens", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.startWithCity(directory);
    const file = join(directory, "song.mp3");
    const town = await run("build-town.mjs", "0.25", server.cityUrl);
    expect(town).to.match(/^Week 0: 0 citizens/);
    const city = new BridgeClient(server.cityUrl);
    await eventually(
      () => city.state("/state/summary"),
      ({ citizens }) => citizens.count > 0,
    );
    const followed = await run("follow.mjs", "a slow waltz", file, server.client.url);
    expect(followed).to.match(/DiT|Generating music.*%[\s\S]*seed \d+, \d+ bpm/);
    expect(statSync(file).size).to.be.above(100_000);
    expect((await server.client.get("/v1/tasks")).body.data.total).to.equal(0);
    await server.end("SIGTERM");
  });
});
