/**
 * Kills the processes of a fleet on this machine, and counts the tasks that are lost or doubled:
 *
 *     npm run build && node --import tsx scripts/measure/fleet-kills.ts [--minutes 2] [--every 20]
 *
 * Two gateways, three workers with a stub renderer and Redis are killed in turn, one `--every` seconds, while clients
 * submit tasks. Prints each kill, and the outcome of all tasks.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endServed, ServedProcess } from "../../test/e2e/served-process.js";
import { RedisServer } from "../../test/music/fleet/redis-server.js";
import { shortSong } from "../../test/music/live-server.js";

const SONG_MS = 2_000;
/** Time limit for the tasks to end after the last kill; enough on a loaded machine. */
const PATIENCE_MS = 180_000;

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "2" }, every: { type: "string", default: "20" } },
});
/** Latest progress, printed if the measurement ends early. */
let progress = "nothing measured yet";
const root = mkdtempSync(join(tmpdir(), "carillon-fleet-"));
const redis = await RedisServer.start(mkdtempSync(join(root, "redis-")));
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    console.log(`stopped by ${signal}: ${progress}`);
    await cleanUp();
    process.exit(1);
  });
}
try {
  await measureKills(Number(values.minutes), Number(values.every));
} catch (error) {
  console.log(`ended early: ${progress}`);
  throw error;
} finally {
  await cleanUp();
}

async function cleanUp(): Promise<void> {
  await endServed();
  await redis.kill();
  rmSync(root, { recursive: true, force: true });
}

function start(role: string): Promise<ServedProcess> {
  return ServedProcess.startStub(mkdtempSync(join(root, "server-")), SONG_MS, {
    SVC_INIT_LLM: "false",
    SVC_QUEUE_MAXSIZE: "0",
    SVC_ROLE: role,
    SVC_REDIS_URL: redis.url,
    SVC_STORAGE: `file://${root}`,
  });
}

/** Number of end events of each task in the log of a gateway. */
function endsIn({ log }: ServedProcess): number[] {
  const ends = new Map<string, number>();
  for (const line of log.split("\n").filter((each) => each.includes('"task ended"'))) {
    const { task } = JSON.parse(line) as { task: string };
    ends.set(task, (ends.get(task) ?? 0) + 1);
  }
  return [...ends.values()];
}

async function measureKills(minutes: number, everySeconds: number): Promise<void> {
  const roles = ["gateway", "gateway", "worker", "worker", "worker"];
  const servers = await Promise.all(roles.map(start));
  const killed: ServedProcess[] = [];
  const counts = { accepted: 0, kills: 0, failedStarts: 0, doubled: 0 };
  const ids = new Set<string>();
  const startedMs = performance.now();
  const endMs = startedMs + minutes * 60_000;
  const gateways = () => servers.filter((_, index) => roles[index] === "gateway");
  const anyGateway = () => (gateways()[Math.floor(Math.random() * 2)] as ServedProcess).client;

  const note = (what: string) => {
    const passed = ((performance.now() - startedMs) / 60_000).toFixed(1);
    progress = `${passed} minutes, ${counts.kills} kills, ${counts.accepted} tasks accepted; ${what}`;
    console.error(progress);
  };

  /** Restarts a killed process, as often as needed, until it accepts requests. */
  const startAgain = async (role: string): Promise<ServedProcess> => {
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
      const key = { "Idempotency-Key": randomUUID() };
      const told = new Set<string>();
      for (let answers = 0; answers < (count % 5 === 0 ? 2 : 1); ) {
        const answer = await anyGateway()
          .post("/release_task", shortSong, key)
          .catch(() => null);
        if (answer?.status === 200) {
          told.add(answer.body.data.task_id);
          answers++;
        } else await sleep(200);
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
    const role = roles[index] ?? "Redis";
    note(`killing ${role}`);
    if (victim === undefined) {
      await redis.kill();
      await redis.start();
    } else {
      await victim.end("SIGKILL");
      if (role === "gateway") killed.push(victim);
      servers[index] = await startAgain(role);
    }
  }
  await Promise.all(clients);

  const gateway = anyGateway();
  const ends = { succeeded: 0, failed: 0 };
  const lost: string[] = [];
  note("waiting for the last tasks");
  const patience = sleep(PATIENCE_MS, undefined, { ref: false });
  for (const id of ids) {
    await Promise.race([patience, gateway.finished(id).catch(() => {})]);
    const { state } = (await gateway.get(`/v1/tasks/${id}`)).body.data ?? {};
    if (state === "succeeded" || state === "failed") ends[state as "succeeded"]++;
    else lost.push(id);
  }
  for (const server of [...killed, ...gateways()]) {
    counts.doubled += endsIn(server).filter((times) => times > 1).length;
  }
  const { jobs } = (await gateway.get("/v1/stats")).body.data;
  console.log(
    `${minutes} minutes, ${counts.kills} kills: ${counts.accepted} tasks accepted, ${ends.succeeded} succeeded, ` +
      `${ends.failed} failed, ${lost.length} lost, ${counts.doubled} duplicated; tasks by state: ${JSON.stringify(jobs)}; ` +
      `${counts.failedStarts} failed restarts`,
  );
  if (lost.length + counts.doubled > 0) process.exitCode = 1;
}
