import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { FfmpegError, findFfmpeg, retryWhileBusy, startFfmpeg } from "../../../src/music/audio/ffmpeg.js";
import { type ProcessLimits, ProcessSandbox } from "../../../src/music/audio/process-sandbox.js";
import { endOf } from "../../../src/music/audio/starter.js";
import { listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";
import { writeRecording } from "./recordings.js";

const START = {
  stdin: "ignore",
  stdout: "ignore",
  fileBytes: 0,
  timeoutSeconds: 60,
  maxWaitSeconds: 0,
} as const;
const FOREVER = ["-re", "-f", "lavfi", "-i", "anullsrc", "-f", "wav", "pipe:1"];

describe("start of ffmpeg on a system without free file descriptors, processes or memory", () => {
  const directory = temporaryDirectory();

  it("a server without free file descriptors answers 503 with Retry-After and saves a finished song", () => {
    const script = fileURLToPath(new URL("./short-of-descriptors.ts", import.meta.url));
    const recording = writeRecording(join(directory, "tone.wav"), { seconds: 1 });
    const song = join(directory, "song.mp3");
    const limited = ["-c", 'ulimit -n 200; exec "$@"', "sh", process.execPath, "--import", "tsx"];
    const output = execFileSync("sh", [...limited, script, recording, song], { encoding: "utf8" });
    const { detail, bytes, ...others } = JSON.parse(output);
    expect(others).to.deep.equal({
      status: 503,
      headers: { "Retry-After": "5" },
      endedEarly: 0,
      samples: 96_000,
    });
    expect(detail).to.match(/^the server is too busy .* too many files are open \(EMFILE\); try again later/);
    expect(bytes).to.equal(readFileSync(song).length);
    expect(existsSync(`${song}.part`)).to.equal(false);
  });

  for (const code of ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"]) {
    it(`retries the start of ffmpeg after ${code}, and reports a busy server if the error persists`, async () => {
      const lacking = Object.assign(new Error(`spawn ${code}`), { code });
      let attempts = 0;
      const work = async () => {
        if (++attempts < 3) throw lacking;
        return "done";
      };
      expect(await retryWhileBusy(work, { maxWaitSeconds: 60, signal: undefined })).to.equal("done");
      const failure = await retryWhileBusy(() => Promise.reject(lacking), {
        maxWaitSeconds: 0,
        signal: undefined,
      }).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(FfmpegError).and.include({ code: "SYSTEM_BUSY", cause: lacking });
    });
  }

  it("stops retrying the start of ffmpeg after an abort", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const lacking = Object.assign(new Error("spawn EMFILE"), { code: "EMFILE" });
    const work = async () => {
      controller.abort(reason);
      throw lacking;
    };
    const waiting = retryWhileBusy(work, { maxWaitSeconds: 600, signal: controller.signal });
    expect(await waiting.catch((error: unknown) => error)).to.equal(reason);
  });
});

describe("the start of ffmpeg", () => {
  const failureOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);

  it("does not start ffmpeg after an abort", async () => {
    const reason = new Error("enough");
    const started = startFfmpeg(["-version"], { ...START, signal: AbortSignal.abort(reason) });
    expect(await failureOf(started)).to.equal(reason);
  });

  it("a failure of ffmpeg gives an FfmpegError with ffmpeg's message", async () => {
    const { exited } = await startFfmpeg(["-i", "file:/no/such/file"], { ...START, signal: undefined });
    const failure = await failureOf(exited);
    expect(failure).to.be.instanceOf(FfmpegError).and.include({ code: "FFMPEG_FAILED" });
    expect((failure as FfmpegError).stderr).to.include("No such file or directory");
  });

  it("gives ffmpeg only the environment variables that it needs", async () => {
    await findFfmpeg();
    const folder = temporaryDirectory();
    writeFileSync(join(folder, "ffmpeg"), "#!/bin/sh\nenv >&2\nexit 1\n", { mode: 0o755 });
    const { PATH } = process.env;
    process.env.PATH = `${folder}:${PATH}`;
    process.env.SVC_API_KEY = "a secret";
    try {
      const { exited } = await startFfmpeg([], { ...START, signal: undefined });
      const { stderr } = (await failureOf(exited)) as FfmpegError;
      expect(stderr).to.include(`PATH=${folder}`).and.not.include("secret");
    } finally {
      process.env.PATH = PATH;
      delete process.env.SVC_API_KEY;
    }
  });

  it("protects ffmpeg from Ctrl-C in the server's terminal", async () => {
    await findFfmpeg();
    const folder = temporaryDirectory();
    const script = "#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat >&2\nexit 1\n";
    writeFileSync(join(folder, "ffmpeg"), script, { mode: 0o755 });
    const { PATH } = process.env;
    process.env.PATH = `${folder}:${PATH}`;
    try {
      const { exited } = await startFfmpeg([], { ...START, signal: undefined });
      const group = ((await failureOf(exited)) as FfmpegError).stderr.trim();
      expect(Number(group)).to.be.greaterThan(0);
      expect(group).to.not.equal(readFileSync("/proc/self/stat", "utf8").split(" ")[4]);
    } finally {
      process.env.PATH = PATH;
    }
  });

  it("starts ffmpeg in a helper process, and replaces a helper that has ended or is unreachable", async () => {
    await findFfmpeg();
    const folder = temporaryDirectory();
    writeFileSync(join(folder, "ffmpeg"), "#!/bin/sh\necho $PPID >&2\nexit 1\n", { mode: 0o755 });
    const { PATH, TMPDIR } = process.env;
    process.env.PATH = `${folder}:${PATH}`;
    const parentOfFfmpeg = async () => {
      const { exited } = await startFfmpeg([], { ...START, signal: undefined });
      return Number(((await failureOf(exited)) as FfmpegError).stderr);
    };
    try {
      const small = await parentOfFfmpeg();
      expect(small).to.be.greaterThan(0).and.not.equal(process.pid);
      expect(await parentOfFfmpeg()).to.equal(small);
      process.env.PATH = PATH;
      const options = { ...START, stdout: "pipe", signal: undefined } as const;
      const { stdout, exited } = await startFfmpeg(FOREVER, options);
      process.env.PATH = `${folder}:${PATH}`;
      let outputs = 0;
      // Wait for the first output before killing the parent. Earlier, ffmpeg might not end with its parent.
      for await (const _ of stdout) if (outputs++ === 0) process.kill(small, "SIGKILL");
      expect(await failureOf(exited))
        .to.be.instanceOf(FfmpegError)
        .and.include({ code: "FFMPEG_FAILED" });
      while (existsSync(`/proc/${small}`)) await setImmediate();
      const sockets = temporaryDirectory();
      process.env.TMPDIR = sockets;
      const next = await parentOfFfmpeg();
      expect(next).to.be.greaterThan(0).and.not.be.oneOf([small, process.pid]);
      rmSync(sockets, { recursive: true });
      mkdirSync(sockets);
      expect(await parentOfFfmpeg())
        .to.be.greaterThan(0)
        .and.not.be.oneOf([small, next, process.pid]);
    } finally {
      process.env.PATH = PATH;
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    }
  });

  for (const [fault, answer] of Object.entries<(response: ServerResponse) => void>({
    "does not say how ffmpeg ended": (response) => response.end("audio"),
    "says it in other words": (response) => {
      response.writeHead(200, { Trailer: "end" }).write("audio");
      response.addTrailers({ end: "%" });
      response.end();
    },
    "closes the connection": (response) => {
      response.write("audio");
      response.socket?.destroySoon();
    },
  })) {
    it(`a helper process that ${fault} fails the run`, async () => {
      const server = createServer((_request, response) => answer(response));
      const { url } = await listenLocally(server);
      try {
        const [response] = (await once(get(url), "response")) as [IncomingMessage];
        const end = failureOf(endOf(response));
        response.resume();
        expect(await end).to.be.instanceOf(Error);
      } finally {
        server.close();
      }
    });
  }

  it("a run whose output nobody reads any more fails", async () => {
    const options = { ...START, stdout: "pipe", signal: undefined } as const;
    const { stdout, exited } = await startFfmpeg(FOREVER, options);
    for await (const _ of stdout) break;
    expect(await failureOf(exited)).to.be.instanceOf(FfmpegError);
  });

  it("kills ffmpeg after a time limit", async () => {
    const options = { ...START, stdout: "pipe", timeoutSeconds: 0.5, signal: undefined } as const;
    const { stdout, exited } = await startFfmpeg(FOREVER, options);
    for await (const bytes of stdout) expect(bytes.length).to.be.greaterThan(0);
    expect(await failureOf(exited))
      .to.be.instanceOf(FfmpegError)
      .and.include({ code: "TIMEOUT" });
  });

  it("a missing program fails with exit code 127, and a program that is not executable with 126", async () => {
    const failure = await failureOf(ProcessSandbox.probe("no-such-program", ["-version"], process.env));
    expect(failure).to.include({ code: 127 });
    expect(await failureOf(ProcessSandbox.probe("/dev/null", ["-version"], process.env))).to.include({
      code: 126,
    });
  });
});

describe("resource limits of the ffmpeg process", () => {
  const directory = temporaryDirectory();
  const at = (name: string): string => join(directory, name);
  const limits: ProcessLimits = { cpuSeconds: 60, memoryBytes: 2 ** 29, fileBytes: 0 };
  let sandbox: ProcessSandbox;

  before(async () => {
    ({ sandbox } = await findFfmpeg());
  });

  async function run(args: readonly string[], change: Partial<ProcessLimits> = {}) {
    const quiet = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y"];
    const [program, rest] = sandbox.command([...quiet, ...args], { ...limits, ...change });
    const child = spawn(program, rest, { stdio: "ignore", timeout: 30_000 });
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    return { code, signal };
  }

  it("limits the CPU time of ffmpeg, so that a search through a huge file ends", async () => {
    const bomb = writeRecording(at("bomb.mp3"), { seconds: 1 });
    truncateSync(bomb, 4e10);
    const { signal } = await run(["-i", `file:${bomb}`, "-f", "null", "-"], { cpuSeconds: 1 });
    expect(signal).to.equal("SIGKILL");
  });

  it("limits the memory of ffmpeg", async () => {
    const large = ["-xerror", "-threads", "1", "-f", "lavfi", "-i", "sine=r=1000000:d=20", "-af", "areverse"];
    expect((await run([...large, "-f", "null", "-"])).code).to.equal(0);
    expect(await run([...large, "-f", "null", "-"], { memoryBytes: 40 * 2 ** 20 })).to.not.include({
      code: 0,
    });
  });

  it("limits the size of files that ffmpeg writes", async () => {
    const tone = ["-f", "lavfi", "-i", "sine=d=1", "-f", "wav"];
    expect((await run([...tone, at("none.wav")])).signal).to.equal("SIGXFSZ");
    expect(existsSync(at("none.wav")) ? readFileSync(at("none.wav")).length : 0).to.equal(0);
    expect((await run([...tone, at("some.wav")], { fileBytes: 200_000 })).code).to.equal(0);
  });

  it("denies ffmpeg the network if the system supports this", async function () {
    if (!sandbox.description.includes("no network")) this.skip();
    let connections = 0;
    const server = createServer((_request, response) => response.end()).on("connection", () => connections++);
    const url = `${(await listenLocally(server)).url}/song.mp3`;
    try {
      expect((await run(["-i", url, "-f", "null", "-"])).code).to.not.equal(0);
      expect(connections).to.equal(0);
    } finally {
      server.close();
    }
  });
});
