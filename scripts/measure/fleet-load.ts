/**
 * Measures the throughput of a fleet on this machine, and the tasks lost when its processes are killed:
 *
 *     node --import tsx scripts/measure/fleet-load.ts [--songs 20] [--tasks 100] [--queued 10000] [--kill-minutes 2] [--kill-every 20]
 *
 * Prints
 * - songs per minute (--songs, made by carillon-nano) and tasks per second (--tasks) for the embedded queue
 *   and for 1, 2 and 3 workers;
 * - the time to list and cancel many waiting tasks (--queued);
 * - each kill, and the outcome of all tasks after the kills (--kill-minutes).
 *
 * All parts but the songs use a stub renderer. 0 skips a part.
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
import { cli, stub } from "../../test/e2e/served-process.js";

const song = {
  prompt: "a short song",
  audio_duration: 10,
  inference_steps: 1,
  batch_size: 1,
  audio_format: "wav",
};
const ENDLESS_MS = 3_600_000;
/** Render time of a song in the part that kills processes. */
const KILLED_SONG_MS = 2_000;
const CLIENTS = 8;
/** Time limit for a process to start, and for a task to end after the last kill; enough on a loaded machine. */
const PATIENCE_MS = 180_000;

const { values } = parseArgs({
  options: {
    songs: { type: "string", default: "20" },
    tasks: { type: "string", default: "100" },
    queued: { type: "string", default: "10000" },
    "kill-minutes": { type: "string", default: "2" },
    "kill-every": { type: "string", default: "20" },
  },
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
  renderMs: number | null;
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

let redisPort = 0;
async function startRedis(directory = mkdtempSync(join(root, "redis-"))): Promise<ChildProcess> {
  if (redisPort === 0) redisPort = await freePort();
  const options = ["--port", String(redisPort), "--dir", directory, "--appendonly", "yes"];
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

/**
 * @param role "alone": a server with its own queue
 * @param renderMs time that the stub renderer takes for a song; null: carillon-nano makes the songs
 */
async function start(role: string, renderMs: number | null = 0): Promise<Server> {
  const fleet = { SVC_ROLE: role, SVC_REDIS_URL: `redis://127.0.0.1:${redisPort}` };
  const real = role === "alone" ? [cli, "serve", "--music"] : [cli, role];
  const command = renderMs === null ? real : [stub, String(renderMs)];
  const child = launch(process.execPath, command, {
    SVC_TMPDIR: mkdtempSync(join(root, "server-")),
    SVC_DEVICE: "cpu",
    SVC_INIT_LLM: "false",
    SVC_API_PORT: "0",
    SVC_QUEUE_MAXSIZE: "0",
    ...(role === "alone" ? {} : { ...fleet, SVC_STORAGE: `file://${root}` }),
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
    return { url, child, role, renderMs, ends };
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

async function submit(url: string, key: string = randomUUID()): Promise<string> {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  return (await ask(url, "/release_task", { method: "POST", headers, body: JSON.stringify(song) })).task_id;
}

/** Resolves when a task has ended. */
async function ended(url: string, id: string, signal: AbortSignal | null = null): Promise<void> {
  await (await fetch(`${url}/v1/tasks/${id}/events`, { signal })).text();
}

/** Calls `work` `count` times, several at a time. @returns milliseconds of each call, ascending */
async function times(count: number, work: (index: number) => Promise<unknown>, clients = CLIENTS) {
  const taken: number[] = [];
  let next = 0;
  const client = async () => {
    while (next < count) {
      const index = next++;
      const startedMs = performance.now();
      await work(index);
      taken.push(performance.now() - startedMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return taken.sort((a, b) => a - b);
}

const quantile = (sorted: readonly number[], share: number) =>
  Math.round(sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] as number);
const spread = (sorted: readonly number[]) =>
  `p50 ${quantile(sorted, 0.5)} ms, p99 ${quantile(sorted, 0.99)} ms`;

async function untilWorkers(url: string, count: number): Promise<void> {
  while ((await ask(url, "/v1/stats")).workers.length !== count) await sleep(50);
}

/** Prints the songs per minute of carillon-nano. All workers share the cores of this machine. */
async function measureSongs(count: number): Promise<void> {
  await eachSize(null, async (what, url) => {
    await ended(url, await submit(url));
    const startedMs = performance.now();
    await times(count, async () => ended(url, await submit(url)));
    const minutes = (performance.now() - startedMs) / 60_000;
    console.log(`${what}: ${(count / minutes).toFixed(1)} songs per minute (10 s each, carillon-nano)`);
  });
}

async function measureTasks(count: number): Promise<void> {
  await eachSize(100, async (what, url) => {
    await times(5, async () => ended(url, await submit(url)), 1);
    const single = await times(Math.min(count, 50), async () => ended(url, await submit(url)), 1);
    const startedMs = performance.now();
    const ids: string[] = [];
    await times(count, async () => ids.push(await submit(url)));
    await times(count, (index) => ended(url, ids[index] as string));
    const rate = count / ((performance.now() - startedMs) / 1000);
    console.log(`${what}: ${rate.toFixed(1)} tasks per second; latency of a single task: ${spread(single)}`);
  });
}

/** Measures a single server, then a gateway with 1, 2 and 3 workers. */
async function eachSize(
  renderMs: number | null,
  measure: (what: string, url: string) => Promise<void>,
): Promise<void> {
  const alone = await start("alone", renderMs);
  await measure("embedded queue, one worker", alone.url);
  await stop(alone.child);
  const redis = await startRedis();
  const gateway = await start("gateway");
  const workers: Server[] = [];
  for (const number of [1, 2, 3]) {
    workers.push(await start("worker", renderMs));
    await untilWorkers(gateway.url, number);
    await measure(`${number} worker${number > 1 ? "s" : ""}`, gateway.url);
  }
  for (const { child } of [gateway, ...workers]) await stop(child);
  await stop(redis);
}

async function measureQueue(count: number): Promise<void> {
  const redis = await startRedis();
  const gateway = await start("gateway");
  const worker = await start("worker", ENDLESS_MS);
  await untilWorkers(gateway.url, 1);
  const { url } = gateway;
  const ids: string[] = [];
  const accepted = await times(count, async () => ids.push(await submit(url)));
  console.log(`submit ${count} tasks, ${CLIENTS} at a time: ${spread(accepted)}`);
  const pages = Math.min(Math.ceil(count / 100), 100);
  const page = (index: number, filter = "") => ask(url, `/v1/tasks?limit=100&offset=${index * 100}${filter}`);
  console.log(`list a page of 100 tasks: ${spread(await times(pages, (index) => page(index), 1))}`);
  console.log(`search the tasks: ${spread(await times(10, (index) => page(index, "&search=short"), 1))}`);
  const cancelled = await times(count, (index) => ask(url, `/v1/tasks/${ids[index]}`, { method: "DELETE" }));
  console.log(`cancel a task, ${CLIENTS} at a time: ${spread(cancelled)}`);
  console.log(`tasks by state after cancelling: ${JSON.stringify((await ask(url, "/v1/stats")).jobs)}`);
  for (const { child } of [gateway, worker]) await stop(child);
  await stop(redis);
}

async function measureKills(minutes: number, everySeconds: number): Promise<void> {
  const directory = mkdtempSync(join(root, "redis-"));
  let redis = await startRedis(directory);
  const starting = ["gateway", "gateway", "worker", "worker", "worker"];
  const servers = await Promise.all(starting.map((role) => start(role, KILLED_SONG_MS)));
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
  const startAgain = async ({ role, renderMs }: Server): Promise<Server> => {
    for (;;) {
      try {
        return await start(role, renderMs);
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
      redis = await startRedis(directory);
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

if (Number(values.songs) > 0) await measureSongs(Number(values.songs));
if (Number(values.tasks) > 0) await measureTasks(Number(values.tasks));
if (Number(values.queued) > 0) await measureQueue(Number(values.queued));
if (Number(values["kill-minutes"]) > 0)
  await measureKills(Number(values["kill-minutes"]), Number(values["kill-every"]));
isDone = true;
process.exit();
