import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { readStatus } from "../supervisor.js";

const supervisor = new URL("../supervisor.ts", import.meta.url).href;

/**
 * Source of a program that counts to `steps`. On SIGTERM the program saves its count and exits, or ignores the
 * signal. After a restart the program continues from the saved count.
 */
const counter = (directory: string, steps: number, onStop: "save" | "ignore"): string => `
  const { existsSync, readFileSync, writeFileSync } = require("node:fs");
  const state = ${JSON.stringify(join(directory, "state"))};
  let step = existsSync(state) ? Number(readFileSync(state, "utf8")) : 0;
  writeFileSync(${JSON.stringify(join(directory, "pid"))}, String(process.pid));
  process.on("SIGTERM", () => {
    if (${onStop === "ignore"}) return;
    writeFileSync(state, String(step));
    process.exit();
  });
  setInterval(() => {
    console.log(JSON.stringify({ stage: "count", step: ++step, steps: ${steps}, loss: 1 / step }));
    if (step >= ${steps}) process.exit();
  }, 10);
`;

describe("supervisor of carillon-nano's training", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "carillon-supervisor-"));
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  function start(program: string, pauseAtSeconds = 3600, memoryBytes = 2 ** 32): ChildProcess {
    const code = `
      import { lockTraining, Supervisor } from ${JSON.stringify(supervisor)};
      const directory = ${JSON.stringify(directory)};
      lockTraining(directory);
      const supervisor = new Supervisor(directory, { isIdle: false, memoryBytes: ${memoryBytes} });
      const program = { stage: "start", command: process.execPath, parameters: ["-e", ${JSON.stringify(program)}] };
      const hasEnded = await supervisor.run({ ...program, env: process.env }, ${pauseAtSeconds / 3600});
      console.log(hasEnded ? "ended" : "paused");
      supervisor.end("finished");
    `;
    const parameters = ["--import", "tsx", "--input-type=module", "--eval", code];
    return spawn(process.execPath, parameters, { stdio: ["ignore", "pipe", "pipe"] });
  }

  async function outputOf({ stdout }: ChildProcess): Promise<string> {
    return stdout === null ? "" : text(stdout);
  }

  const reaches = async (step: number): Promise<void> => {
    while ((readStatus(directory)?.step ?? 0) < step) await delay(10);
  };

  it("lets a stopped program save its state, and resumes from that state", async () => {
    const first = start(counter(directory, 1000, "save"));
    const ended = once(first, "exit");
    await reaches(3);
    first.kill("SIGINT");
    expect((await ended)[0]).to.equal(0);
    expect(readStatus(directory)?.state).to.equal("stopped");
    const saved = Number(readFileSync(join(directory, "state"), "utf8"));
    expect(saved).to.be.at.least(3);
    expect(await outputOf(start(counter(directory, saved + 2, "save")))).to.contain("ended");
    expect(readStatus(directory)).to.include({ state: "finished", step: saved + 2 });
  });

  it("kills a program that ignores SIGTERM", async () => {
    const training = start(counter(directory, 10_000, "ignore"));
    const ended = once(training, "exit");
    await reaches(3);
    training.kill("SIGTERM");
    expect((await ended)[0]).to.equal(0);
    expect(existsSync(join(directory, "state"))).to.equal(false);
    const pid = Number(readFileSync(join(directory, "pid"), "utf8"));
    expect(() => process.kill(pid, 0)).to.throw("ESRCH");
  });

  it("stops a program when its processes together exceed the memory limit", async () => {
    const holding = "const held = Buffer.alloc(200e6, 1); setInterval(() => held.length, 1000);";
    const program = `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(holding)}]); ${holding}`;
    const training = start(program, 3600, 380e6);
    expect(await text(training.stderr as NodeJS.ReadableStream)).to.contain("used more than 380000000 bytes");
  });

  it("pauses the program after the given training hours, and sums the hours of all runs", async () => {
    expect(await outputOf(start(counter(directory, 10_000, "save"), 0.5))).to.contain("paused");
    const hours = readStatus(directory)?.trainedHours ?? 0;
    expect(hours).to.be.at.least(0.5 / 3600);
    const saved = Number(readFileSync(join(directory, "state"), "utf8"));
    expect(await outputOf(start(counter(directory, saved + 20, "save")))).to.contain("ended");
    expect(readStatus(directory)?.trainedHours).to.be.above(hours);
  });
});
