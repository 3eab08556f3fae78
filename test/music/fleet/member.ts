/** Members of a fleet without HTTP servers. Each has a queue, and a runner whose jobs the test ends. */
import type { Logger } from "pino";
import type { Fleet } from "../../../src/music/fleet/fleet.js";
import { FleetQueue } from "../../../src/music/fleet/fleet-queue.js";
import { FleetWorker } from "../../../src/music/fleet/fleet-worker.js";
import { RECORD_VERSION } from "../../../src/music/fleet/workers.js";
import type { Task } from "../../../src/music/queue/store.js";
import { ManualRunner } from "../queue/manual-runner.js";

export const stubModel = (name = "stub", isLoaded = true, fingerprint = "files") => ({
  name,
  slot: 1,
  is_loaded: isLoaded,
  is_turbo: true,
  tasks: null,
  fingerprint,
});

/** Description that a worker announces to the fleet. */
export const describeWorker = (change: object = {}) => ({
  version: "0.0.0",
  device: "cpu",
  free_memory_bytes: 1,
  models: [stubModel()],
  lm_models: [] as string[],
  payload_versions: [RECORD_VERSION],
  ...change,
});

export interface MemberOptions {
  log: Logger;
  runner?: ManualRunner;
  capacity?: number;
  /** Name, limits and description of the worker; null for a gateway. */
  worker: { name: string; places?: number; jobTimeoutSeconds?: number; describes?: object } | null;
}

export function memberOf(
  fleet: Fleet,
  { log, runner = new ManualRunner(), capacity = 0, worker }: MemberOptions,
) {
  const limits = { places: 1, jobTimeoutSeconds: 0, averageWindow: 3 };
  const describe = async () => describeWorker(worker?.describes);
  const own = worker && new FleetWorker(fleet, runner, { ...limits, ...worker, describe }, log);
  const cleanUp = (task: Task) => runner.cleanUp(task);
  return {
    fleet,
    runner,
    queue: new FleetQueue(fleet, { capacity, averageJobSeconds: 5, cleanUp }, log, own),
  };
}
