/**
 * Kills the processes of a fleet on this machine, and counts the tasks that are lost or doubled:
 *
 *     node --import tsx scripts/measure/fleet-kills.ts [--minutes 2] [--every 20]
 *
 * Two gateways, three workers with a stub renderer and Redis are killed in turn, one `--every` seconds, while clients
 * submit tasks. Prints each kill, and the outcome of all tasks.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { stub } from "../../test/e2e/served-process.js";

const song = {
  prompt: "a short song",
  audio_duration: 10,
  inference_steps: 1,
  batch_size: 1,
  audio_format: "wav",
};
const SONG_MS = 2_000;
/** Time limit for a process to start, and for a task to end after the last kill; enough on a loaded machine. */
const PATIENCE_MS = 180_000;

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "2" }, every: { type: "string", default: "20" } },
});
/** Latest progress, printed if the measurement ends early. */
let progress = "nothing measured yet";
let isDone = false;
const root = mkdtempSync(join(tmpdir(), "carillon-fleet-"));
const children = new Set<ChildProcess>();
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    console.log(`stopped by ${signal}`);
    process.exit(1);
  });
}
process.on("exit", (code) => {
  if (!isDone) console.log(`ended early, with exit code ${code}: ${progress}`);
  for (const child of children) child.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

interface Server {
  url: string;
  child: ChildProcess;
  role: string;
  /** Number of end events per task. */
  ends: Map<string, number>;
}

function launch(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

const redisPort = await freePort();
const redisDirectory = mkdtempSync(join(root, "redis-"));
async function startRedis(): Promise<ChildProcess> {
  const options = ["--port", String(redisPort), "--dir", redisDirectory, "--appendonly", "yes"];
  const child = launch("redis-server", options);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (!line.includes("Ready to accept connections")) continue;
    child.stdout?.resume();
    return child;
  }
  throw new Error("Redis ended before it was ready");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

async function start(role: string): Promise<Server> {
  const child = launch(process.execPath, [stub, String(SONG_MS)], {
    SVC_TMPDIR: mkdtempSync(join(root, "server-")),
    SVC_DEVICE: "cpu",
    SVC_INIT_LLM: "false",
    SVC_API_PORT: "0",
    SVC_QUEUE_MAXSIZE: "0",
    SVC_ROLE: role,
    SVC_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    SVC_STORAGE: `file://${root}`,
  });
  const ends = new Map<string, number>();
  let said = "";
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on("line", (line) => {
    said = line;
    if (!line.includes('"task ended"')) return;
    const { task } = JSON.parse(line) as { task: string };
    ends.set(task, (ends.get(task) ?? 0) + 1);
  });
  const patience = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const [, url] = /^\w+ on (http\S+)$/.exec(line) ?? [];
    if (url === undefined) continue;
    clearTimeout(patience);
    return { url, child, role, ends };
  }
  clearTimeout(patience);
  throw new Error(`${role} exited before it was ready; last output: ${said}`);
}

// biome-ignore lint/suspicious/noExplicitAny: any JSON response
async function ask(url: string, path: string, init: RequestInit = {}): Promise<any> {
  const response = await fetch(url + path, init);
  const body = (await response.json()) as { data: unknown; detail?: string };
  if (!response.ok) throw new Error(`${path}: ${response.status} ${body.detail}`);
  return body.data;
}

async function submit(url: string, key: string): Promise<string> {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  return (await ask(url, "/release_task", { method: "POST", headers, body: JSON.stringify(song) })).task_id;
}

/** Resolves when a task has ended. */
async function ended(url: string, id: string, signal: AbortSignal | null = null): Promise<void> {
  await (await fetch(`${url}/v1/tasks/${id}/events`, { signal })).text();
}

async function measureKills(minutes: number, everySeconds: number): Promise<void> {
  let redis = await startRedis();
  const starting = ["gateway", "gateway", "worker", "worker", "worker"];
  const servers = await Promise.all(starting.map(start));
  const gone: Server[] = [];
  const counts = { accepted: 0, kills: 0, failedStarts: 0, doubled: 0 };
  const ids = new Set<string>();
  const startedMs = performance.now();
  const endMs = startedMs + minutes * 60_000;
  const gateways = () => servers.filter(({ role }) => role === "gateway");
  const any = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)] as T;

  const note = (what: string) => {
    const passed = ((performance.now() - startedMs) / 60_000).toFixed(1);
    progress = `${passed} minutes, ${counts.kills} kills, ${counts.accepted} tasks accepted; ${what}`;
    console.error(progress);
  };

  /** Restarts a killed process, as often as needed, until it accepts requests. */
  const startAgain = async ({ role }: Server): Promise<Server> => {
    for (;;) {
      try {
        return await start(role);
      } catch (error) {
        counts.failedStarts++;
        note((error as Error).message);
      }
    }
  };

  /**
   * Client that submits tasks and retries until a gateway accepts each. It sends every fifth task to two
   * gateways with the same idempotency key.
   */
  const client = async (number: number) => {
    for (let count = 0; performance.now() < endMs; count++) {
      const key = randomUUID();
      const told = new Set<string>();
      for (let answers = 0; answers < (count % 5 === 0 ? 2 : 1); ) {
        const id = await submit(any(gateways()).url, key).catch(() => null);
        if (id === null) await sleep(200);
        else {
          told.add(id);
          answers++;
        }
      }
      for (const id of told) ids.add(id);
      counts.accepted++;
      if (told.size > 1) counts.doubled++;
      await sleep(4_000 + 500 * number);
    }
  };
  const clients = [0, 1, 2].map(client);
  for (;;) {
    const nextMs = startedMs + (counts.kills + 1) * everySeconds * 1000;
    if (nextMs >= endMs) break;
    await sleep(Math.max(nextMs - performance.now(), 0));
    const index = counts.kills++ % (servers.length + 1);
    const victim = servers[index];
    note(`killing ${victim === undefined ? "Redis" : `a ${victim.role}`}`);
    if (victim === undefined) {
      await stop(redis);
      redis = await startRedis();
    } else {
      await stop(victim.child);
      gone.push(victim);
      servers[index] = await startAgain(victim);
    }
  }
  await Promise.all(clients);

  const { url } = any(gateways());
  const ends = { succeeded: 0, failed: 0 };
  const lost: string[] = [];
  note("waiting for the last tasks");
  const patience = AbortSignal.timeout(PATIENCE_MS);
  for (const id of ids) {
    await ended(url, id, patience).catch(() => {});
    const { state } = await ask(url, `/v1/tasks/${id}`).catch(() => ({ state: "lost" }));
    if (state === "succeeded" || state === "failed") ends[state as "succeeded"]++;
    else lost.push(id);
  }
  for (const { ends } of [...servers, ...gone].filter(({ role }) => role === "gateway")) {
    counts.doubled += [...ends.values()].filter((times) => times > 1).length;
  }
  const { jobs } = await ask(url, "/v1/stats");
  console.log(
    `${minutes} minutes, ${counts.kills} kills: ${counts.accepted} tasks accepted, ${ends.succeeded} succeeded, ` +
      `${ends.failed} failed, ${lost.length} lost, ${counts.doubled} duplicated; tasks by state: ${JSON.stringify(jobs)}; ` +
      `${counts.failedStarts} failed restarts`,
  );
  for (const { child } of servers) await stop(child);
  await stop(redis);
  if (lost.length + counts.doubled > 0) process.exitCode = 1;
}

await measureKills(Number(values.minutes), Number(values.every));
isDone = true;
process.exit();
