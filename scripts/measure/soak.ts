/**
 * Loads a server for a given time and checks for leaks:
 *
 *     node --import tsx scripts/measure/soak.ts --minutes 30 [--engine]
 *
 * The load consists of tasks, cancellations, clients that hang up, idle connections and, if this machine can
 * mount disks, a disk that is full at times. Prints memory, descriptors and orphaned files once a minute, and
 * a verdict at the end. Without --engine a stub renderer makes thousands of songs.
 */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { canMountDisks, ServedProcess } from "../../test/e2e/served-process.js";

const song = { prompt: "a short song", audio_duration: 10, inference_steps: 1, batch_size: 1 };
const SONG_MS = 100;
const DISK_MIB = 512;
/** Enough waiting tasks to keep the server busy. */
const MAX_WAITING = 20;
/** Allowed growth of memory between the first minute and the last. */
const MAX_GROWTH_MIB = 64;
const MAX_GROWTH_DESCRIPTORS = 30;

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "30" }, engine: { type: "boolean", default: false } },
});
const endMs = performance.now() + Number(values.minutes) * 60_000;
const directory = realpathSync(mkdtempSync(join(tmpdir(), "carillon-soak-")));
const counts = { accepted: 0, cancelled: 0, refused: 0, hangUps: 0, fullDisks: 0 };
const accepted: string[] = [];

const hasDisk = canMountDisks();
const limits = hasDisk ? { disk: { directory, sizeKiB: DISK_MIB * 1024 } } : {};
const settings = { SVC_LOG_LEVEL: "silent", SVC_AUDIO_MAX_TOTAL_MB: "64" };
const server = values.engine
  ? await ServedProcess.start(directory, settings, limits)
  : await ServedProcess.startStub(directory, SONG_MS, settings, limits);
const { client } = server;
let hasEnded = false;
void server.ended().then(() => {
  hasEnded = true;
});
console.log(
  `${client.url}, ${hasDisk ? `a disk of ${DISK_MIB} MiB` : "cannot mount a disk: skipping full disks"}`,
);

const samples: { memoryMiB: number; descriptors: number; orphans: number }[] = [];
const workload = [submit, cancel, hangUp, idle, ...(hasDisk ? [fillDisk] : [])].map((action) =>
  repeat(action),
);
await repeat(sample);
await Promise.all(workload);
await verdict();

/**
 * Returns the path by which this process can access a file of the server, even on the server's private disk.
 */
function seen(name: string): string {
  return server.hostPath(join(directory, name));
}

async function repeat(action: () => Promise<void>): Promise<void> {
  while (performance.now() < endMs && !hasEnded) {
    await action().catch((error: Error) => console.error(`${action.name}: ${error.message}`));
  }
}

async function stats(): Promise<{ jobs: Record<string, number>; queue_size: number }> {
  return (await client.get("/v1/stats")).body.data;
}

async function isBusy(): Promise<boolean> {
  const { queued, running } = (await stats()).jobs as { queued: number; running: number };
  return !hasEnded && queued + running > 0;
}

async function submit(): Promise<void> {
  await sleep(SONG_MS);
  if ((await stats()).queue_size >= MAX_WAITING) return;
  const { status, body } = await client.post("/release_task", song);
  if (status !== 200) {
    counts.refused++;
    return;
  }
  accepted.push(body.data.task_id);
  counts.accepted++;
}

async function cancel(): Promise<void> {
  await sleep(1000);
  const id = accepted.at(-1);
  if (id !== undefined && (await client.post("/cancel_task", { task_id: id })).status === 200)
    counts.cancelled++;
}

/** Sends half a request, then disconnects. */
async function hangUp(): Promise<void> {
  const socket = connect(Number(new URL(client.url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST /release_task HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{");
  await sleep(500);
  socket.destroy();
  counts.hangUps++;
}

/** Opens connections on which no request is sent. */
async function idle(): Promise<void> {
  const sockets = Array.from({ length: 50 }, () => connect(Number(new URL(client.url).port), "127.0.0.1"));
  for (const socket of sockets) socket.on("error", () => {});
  await sleep(5000);
  for (const socket of sockets) socket.destroy();
  await sleep(5000);
}

async function fillDisk(): Promise<void> {
  await sleep(20_000);
  const filler = seen("filler");
  const file = openSync(filler, "w");
  try {
    for (;;) writeSync(file, Buffer.alloc(2 ** 16));
  } catch {
    counts.fullDisks++;
  } finally {
    closeSync(file);
  }
  await sleep(5000);
  rmSync(filler);
}

async function sample(): Promise<void> {
  await sleep(Math.min(60_000, Math.max(endMs - performance.now(), 1)));
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  const memoryMiB = Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
  const descriptors = readdirSync(`/proc/${server.pid}/fd`).length;
  const { jobs } = await stats();
  // A running task may have a file that its record does not list yet.
  const songs = readdirSync(seen("api_audio")).length;
  const orphans = Math.max(songs - (jobs.succeeded as number) - (jobs.running as number), 0);
  samples.push({ memoryMiB, descriptors, orphans });
  console.log(JSON.stringify({ memoryMiB, descriptors, songs, orphans, jobs, ...counts }));
}

async function verdict(): Promise<void> {
  const faults: string[] = [];
  if (hasEnded) faults.push(`the server exited early: ${await server.ended()}`);
  while (await isBusy()) await sleep(SONG_MS);
  for (const id of accepted) {
    const { status, error, result } = (await client.query(id)).item;
    if (status === 2 && error !== "Cancelled by user") faults.push(`task ${id} failed: ${error}`);
    // An empty list means that retention has deleted the task. That is no fault.
    if (status === 0 && result !== "[]") faults.push(`task ${id} never ended`);
  }
  const [first, last] = [samples[0], samples.at(-1)];
  if (first !== undefined && last !== undefined) {
    if (last.memoryMiB - first.memoryMiB > MAX_GROWTH_MIB)
      faults.push(`memory grew from ${first.memoryMiB} to ${last.memoryMiB} MiB`);
    if (last.descriptors - first.descriptors > MAX_GROWTH_DESCRIPTORS)
      faults.push(`descriptors grew from ${first.descriptors} to ${last.descriptors}`);
    if (last.orphans > 0) faults.push(`${last.orphans} song files belong to no task`);
  }
  const code = await server.end("SIGTERM");
  if (code !== 0) faults.push(`the server exited with ${code} on SIGTERM`);
  rmSync(directory, { recursive: true, force: true });
  console.log(
    faults.length === 0 ? "result: no faults" : `result: ${faults.length} faults\n${faults.join("\n")}`,
  );
  process.exitCode = faults.length === 0 ? 0 : 1;
}
