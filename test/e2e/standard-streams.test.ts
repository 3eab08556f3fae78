import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { freePort } from "../local-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { cli, stub } from "./served-process.js";

/** Targets to which the tests redirect stdout and stderr. */
const TARGETS = { full: "/dev/full", closed: "&-", "an unread pipe": "&5" };
type Target = keyof typeof TARGETS;

/** Descriptor 5 is a full pipe without a reader. */
const WITH_FULL_PIPE = `
  mkfifo "$0"
  exec 5<>"$0"
  dd if=/dev/zero of="$0" oflag=nonblock bs=4096 count=1000 2>/dev/null
`;

describe("a server with blocked standard streams", () => {
  const started: ChildProcess[] = [];
  const homes = [temporaryDirectory(), ...Object.keys(TARGETS).map(() => temporaryDirectory())];

  after(() => {
    for (const child of started) child.kill("SIGKILL");
  });

  /** Starts a server, waits until it responds, and stops it. @returns its metrics and exit code */
  async function serve(home: string, command: readonly string[], stdout: Target, stderr: Target) {
    const port = await freePort();
    const script = `${WITH_FULL_PIPE}exec "$@" >${TARGETS[stdout]} 2>${TARGETS[stderr]}`;
    const child = spawn("bash", ["-c", script, join(home, "pipe"), process.execPath, ...command], {
      env: {
        ...process.env,
        SVC_HOME: home,
        SVC_DEVICE: "cpu",
        SVC_LOG_LEVEL: "debug",
        SVC_API_PORT: String(port),
        CITY_BRIDGE_PORT: "0",
      },
      stdio: "ignore",
    });
    started.push(child);
    const ask = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(5000) });
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    while (!hasEnded() && !(await ask("/health").catch(() => null))?.ok) await sleep(200);
    const metrics = await (await ask("/metrics")).text();
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    const [, dropped] = /^carillon_log_lines_dropped_total (\d+)$/m.exec(metrics) ?? [];
    return { code, dropped: Number(dropped) };
  }

  it("blocked standard streams delay neither start nor stop; lost lines are counted", async () => {
    const ends = await Promise.all(
      homes.slice(1).map(async (home, index) => {
        const target = Object.keys(TARGETS)[index] as Target;
        return { target, ...(await serve(home, [stub], target, target)) };
      }),
    );
    for (const { target, code, dropped } of ends) {
      expect(code, target).to.equal(0);
      if (target === "full") expect(dropped).to.be.greaterThan(0);
    }
  });

  it("blocked standard streams do not block a server that starts other processes @slow", async () => {
    const [home = ""] = homes;
    expect((await serve(home, [cli, "serve"], "full", "an unread pipe")).code).to.equal(0);
  });
});
