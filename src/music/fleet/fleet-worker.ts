/** A worker of a fleet: takes tasks that its models can run, holds them by a lease, and records their results. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Worker } from "bullmq";
import type { Logger } from "../../system/log.js";
import { withTimeLimit } from "../../system/time-limit.js";
import { StoreError } from "../errors.js";
import { hasEnded } from "../queue/catalog.js";
import { crashMessage, MAX_CRASHES, MAX_DISK_FAILURES, requeueDelayMs } from "../queue/rules.js";
import { DamagedRecordError, type Task } from "../queue/store.js";
import { cancelled, stopped, TaskAborted, type TaskRunner } from "../queue/task-queue.js";
import {
  hasFreePlace,
  logFields,
  type RunOutcome,
  retryDelayMs,
  stopRuns,
  TaskRun,
} from "../queue/task-run.js";
import type { TaskProgress } from "../song/progress.js";
import { type Fleet, type FleetJob, type FleetJobData, onceBroken } from "./fleet.js";
import type { FleetEvent } from "./messages.js";
import { redisKey } from "./redis.js";
import { type Announcement, HEARTBEAT_MS, queuesOfWorker } from "./workers.js";

/** How often a worker renews a lease within the lease time. */
const RENEWALS_PER_LEASE = 4;
/**
 * Interval at which a worker with a free place looks for tasks. It may have missed the event for a new task.
 */
const POLL_MS = 1_000;
/**
 * Time that a worker waits before it takes a task whose model it must first load. A worker that has the model
 * in memory can take the task meanwhile.
 */
const HEAD_START_MS = 300;
/** Minimum interval of progress updates within a stage. */
const PROGRESS_MS = 100;
/** Lifetime of the progress that a worker has reported. The worker may die without deleting it. */
const PROGRESS_EXPIRY_MS = 60_000;

export interface FleetWorkerOptions {
  /** Name of the worker, unique in the fleet. */
  name: string;
  /** Number of tasks that the worker runs at once. */
  places: number;
  /** Maximum duration of a job; 0: no limit. */
  jobTimeoutSeconds: number;
  /** Number of jobs whose durations the fleet averages. */
  averageWindow: number;
  describe(): Promise<Omit<Announcement, "name" | "places" | "running" | "is_draining">>;
  serveCalls?(): void;
}

interface HeldTask {
  task: Task;
  job: TaskRun;
  bull: FleetJob;
  token: string;
  route: string;
  /**
   * For each task that was already running when this task was taken: a promise that resolves when that task
   * ends.
   */
  others: Promise<void>[];
  ended: Promise<void>;
  /** Detached: another worker has the task, or it was requeued. Results of this run are ignored. */
  isAbandoned: boolean;
}

export class FleetWorker {
  readonly #held = new Map<string, HeldTask>();
  readonly #queues = new Map<string, Worker<FleetJobData, null, string>>();
  #routes: { route: string; isWarm: boolean }[] = [];
  /** Models whose files differ from the fleet's. */
  #different: string[] = [];
  #timers: NodeJS.Timeout[] = [];
  #isTaking = false;
  /** Whether to take tasks again after the current poll, and whether also those of cold models. */
  #nextPoll: { includesCold: boolean } | null = null;
  #isDraining = false;
  readonly #stopping = new AbortController();

  constructor(
    private readonly fleet: Fleet,
    private readonly runner: TaskRunner,
    private readonly options: FleetWorkerOptions,
    private readonly log: Logger,
  ) {}

  get running(): string[] {
    return [...this.#held.keys()];
  }

  /** Announces the worker and starts taking tasks. Load the models first. */
  start(): void {
    this.fleet.events.on("event", (event) => this.#onEvent(event));
    this.fleet.events.on("reconnected", () => void this.#heartbeat());
    const every = (milliseconds: number, work: () => void) => setInterval(work, milliseconds).unref();
    this.#timers = [
      every(HEARTBEAT_MS, () => void this.#heartbeat()),
      every(POLL_MS, () => this.#poll(true)),
    ];
    this.options.serveCalls?.();
    void this.#heartbeat();
  }

  /** Stops like `TaskQueue.stop`: tasks that do not finish in time are requeued. */
  async stop(graceSeconds: number): Promise<void> {
    this.#isDraining = true;
    await this.#heartbeat();
    await stopRuns(this.#held, graceSeconds, this.#stopping, this.#settle.bind(this), this.log);
    for (const timer of this.#timers) clearInterval(timer);
    await this.fleet.workers.withdraw(this.options.name).catch(() => {});
    for (const queue of this.#queues.values()) await queue.close(true).catch(() => {});
  }

  async #heartbeat(): Promise<void> {
    const { name, places, describe } = this.options;
    try {
      const described = await describe();
      const offered = this.#cannotSeeStore ? [] : described.models;
      const models = await this.fleet.workers.matchingModels(offered);
      this.#logMismatches(offered.filter((model) => !models.includes(model)).map(({ name }) => name));
      const announcement = {
        ...described,
        models,
        name,
        places,
        running: this.running,
        is_draining: this.#isDraining,
      };
      this.#routes = queuesOfWorker(announcement);
      // A draining worker advertises no models.
      await this.fleet.workers.announce(this.#isDraining ? { ...announcement, models: [] } : announcement);
      this.#poll(true);
    } catch (err) {
      this.log.debug({ err }, "could not announce this worker");
    }
  }

  /** Logs each model whose files differ from the fleet's, but only once. */
  #logMismatches(different: string[]): void {
    for (const name of different) {
      if (this.#different.includes(name)) continue;
      const what = `the files of ${name} differ from those of the fleet's other workers`;
      this.log.error(
        `${what}; until they are equal or the others stop, this worker gets no tasks for ${name}`,
      );
    }
    this.#different = different;
  }

  #onEvent(event: FleetEvent): void {
    if (event.type === "cancel") {
      this.#held.get(event.id)?.job.controller.abort(cancelled());
    } else if (event.type === "queued") {
      const served = this.#routes.find(({ route }) => route === event.route);
      if (served === undefined) return;
      if (served.isWarm) this.#poll(false);
      else setTimeout(() => this.#poll(true), HEAD_START_MS).unref();
    }
  }

  /**
   * Takes tasks. If this is called again meanwhile, it takes tasks once more afterwards.
   * @param includesCold whether to take also tasks for models that are not in memory
   */
  #poll(includesCold: boolean): void {
    if (this.#isTaking) {
      this.#nextPoll = { includesCold: includesCold || this.#nextPoll?.includesCold === true };
      return;
    }
    this.#isTaking = true;
    void this.#takeAll(includesCold).finally(() => {
      const next = this.#nextPoll;
      this.#isTaking = false;
      this.#nextPoll = null;
      if (next !== null) this.#poll(next.includesCold);
    });
  }

  /** Takes one task from each queue in turn, so that no queue starves, even if another one cannot be read. */
  async #takeAll(includesCold: boolean): Promise<void> {
    let isAnyTaken = true;
    while (isAnyTaken) {
      isAnyTaken = false;
      for (const { route, isWarm } of this.#routes) {
        if (!isWarm && !includesCold) continue;
        if (
          this.#isDraining ||
          this.#cannotSeeStore ||
          !hasFreePlace(this.#held.values(), this.options.places) ||
          this.#isSuspectHeld
        )
          return;
        const isTaken = await this.#take(route).catch((err: unknown) => {
          this.log.debug({ err }, "could not take a task");
          return false;
        });
        if (isTaken) isAnyTaken = true;
      }
    }
  }

  async #take(route: string): Promise<boolean> {
    const token = randomUUID();
    const bull = await this.#nextJob(route, token);
    if (bull === undefined) return false;
    const { task, isEndedHere } = await this.#claim(bull, token).catch((error: unknown) => {
      // The task's record is lost, so the task cannot run. Complete its job.
      if (error instanceof DamagedRecordError && error.kind !== "newer") {
        return { task: undefined, isEndedHere: false };
      }
      throw error;
    });
    if (task?.claim !== token) {
      await this.#complete(bull, token);
      if (task !== undefined && isEndedHere) await this.#cleanUp(task);
      return true;
    }
    const job = new TaskRun();
    // Claimed while the worker stopped: goes back to the queue at once.
    if (this.#stopping.signal.aborted) job.controller.abort(stopped());
    const others = [...this.#held.values()].map((other) => other.ended);
    const work: HeldTask = {
      task,
      job,
      bull,
      token,
      route,
      others,
      ended: Promise.resolve(),
      isAbandoned: false,
    };
    this.#held.set(task.id, work);
    work.ended = this.#work(work).finally(() => {
      this.#held.delete(task.id);
      this.#poll(true);
    });
    return true;
  }

  async #nextJob(route: string, token: string): Promise<FleetJob | undefined> {
    try {
      return await this.#queueOf(route).getNextJob(token, { block: false });
    } catch (error) {
      this.fleet.noteQueueError(error as Error);
      // BullMQ has moved an unreadable job to the active list.
      if (error instanceof SyntaxError || error instanceof TypeError)
        await this.fleet.removeUnreadableJobs(route);
      throw error;
    }
  }

  #queueOf(route: string): Worker<FleetJobData, null, string> {
    const known = this.#queues.get(route);
    if (known !== undefined) return known;
    const queue = new Worker<FleetJobData, null, string>(route, null, {
      ...this.fleet.bullOptions(),
      autorun: false,
      skipStalledCheck: true,
      skipLockRenewal: true,
      lockDuration: this.fleet.leaseMs,
    });
    queue.on("error", (err) => this.fleet.noteQueueError(err));
    this.#queues.set(route, queue);
    onceBroken(queue, () => this.#queues.delete(route));
    return queue;
  }

  /**
   * Claims the task. A task that has ended, was cancelled, or has crashed too many workers is returned
   * unclaimed.
   */
  async #claim(bull: FleetJob, claim: string): Promise<{ task: Task | undefined; isEndedHere: boolean }> {
    let isEndedHere = false;
    const task = await this.fleet.store.update(bull.id as string, (current, nowMs) => {
      isEndedHere = false;
      if (hasEnded(current.state)) return current;
      const interruptions = current.interruptions + (current.state === "running" ? 1 : 0);
      const crashed = interruptions >= MAX_CRASHES.fleet ? crashMessage(interruptions) : null;
      const error = current.isCancelled ? cancelled().message : crashed;
      if (error === null) return { ...current, state: "running", interruptions, claim, startedAtMs: nowMs };
      isEndedHere = true;
      const end = { state: "failed", error, finishedAtMs: nowMs, endedAtMs: nowMs } as const;
      return { ...current, interruptions, claim: undefined, ...end };
    });
    return { task, isEndedHere };
  }

  async #work(work: HeldTask): Promise<void> {
    const { task, job } = work;
    const renewing = setInterval(
      () => void this.#renew(work),
      this.fleet.leaseMs / RENEWALS_PER_LEASE,
    ).unref();
    try {
      this.log.info({ ...logFields(task), interruptions: task.interruptions }, "task started");
      await this.#waitUntilAlone(work);
      const outcome = await job.run(task, this.runner, {
        timeoutSeconds: this.options.jobTimeoutSeconds,
        onProgress: this.#reporter(task),
        onPlaceFreed: () => this.#poll(true),
        waitingTasks: async () => [],
        log: this.log,
      });
      // Without its GPU the process is about to exit, so it takes no more tasks.
      if (outcome === null) this.#isDraining = true;
      if (outcome === null || work.isAbandoned) return;
      await this.#recordEnd(work, outcome);
    } catch (err) {
      this.log.error({ ...logFields(task), err }, "could not record the end of a task");
    } finally {
      clearInterval(renewing);
    }
  }

  /**
   * A task that was interrupted before waits until it runs alone, so that another crash interrupts no other
   * task.
   */
  async #waitUntilAlone({ task, job, others }: HeldTask): Promise<void> {
    if (task.interruptions === 0) return;
    const { signal } = job.controller;
    await Promise.race([Promise.all(others), signal.aborted || once(signal, "abort")]);
  }

  get #cannotSeeStore(): boolean {
    return this.fleet.sharedStore?.fault != null;
  }

  get #isSuspectHeld(): boolean {
    return [...this.#held.values()].some(({ task }) => task.interruptions > 0);
  }

  /** Renews the lease. Aborts the job if another worker has the task. */
  async #renew(work: HeldTask): Promise<void> {
    const { task, bull, token, route, job } = work;
    try {
      const isRenewed = await bull.extendLock(token, this.fleet.leaseMs).catch(() => 0);
      if (isRenewed === 1) return;
      const current = await this.fleet.store.get(task.id);
      if (current?.claim === token) {
        // The lease expired while Redis was unreachable, but no other worker has taken the task: take the
        // lease again.
        const lock = this.fleet.jobKey(route, task.id, ":lock");
        await this.fleet.redis.attempt(() =>
          this.fleet.redis.set(lock, token, "PX", this.fleet.leaseMs, "NX"),
        );
      } else {
        work.isAbandoned = true;
        job.controller.abort(new TaskAborted("superseded", "another worker has the task"));
      }
    } catch (err) {
      this.log.debug({ ...logFields(task), err }, "could not renew a lease");
    }
  }

  #reporter({ id, requestId }: Task): (progress: TaskProgress) => void {
    let publishedMs = Number.NEGATIVE_INFINITY;
    let stage = "";
    const publish = async (progress: TaskProgress) => {
      const key = redisKey("progress", id);
      await this.fleet.redis.attempt(() =>
        this.fleet.redis.set(key, JSON.stringify(progress), "PX", PROGRESS_EXPIRY_MS),
      );
      await this.fleet.publish({ type: "progress", id, progress, request: requestId });
    };
    return (reported) => {
      // The preview is only in the worker's memory, so gateways must not offer it.
      const progress = { ...reported, previewSeconds: 0 };
      const nowMs = performance.now();
      if (progress.stage === stage && nowMs - publishedMs < PROGRESS_MS) return;
      publishedMs = nowMs;
      stage = progress.stage;
      publish(progress).catch((err: unknown) =>
        this.log.debug({ task: id, err }, "could not publish progress"),
      );
    };
  }

  /** Records the end of a task. Retries until Redis accepts it or the worker stops. */
  async #recordEnd(work: HeldTask, outcome: RunOutcome): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#settle(work, outcome);
        return;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (attempt === 0) {
          this.log.error({ ...logFields(work.task), err: error }, "could not record the end of a task");
        }
        const { signal } = this.#stopping;
        const limit = { ms: retryDelayMs(attempt), signal, error: () => new Error("try again") };
        await withTimeLimit(limit, (signal) => once(this.fleet.events, "reconnected", { signal })).catch(
          () => {},
        );
        if (signal.aborted || work.isAbandoned) return;
      }
    }
  }

  async #settle({ task, job, bull, token }: HeldTask, outcome: RunOutcome): Promise<void> {
    const isDiskFull = outcome.state === "queued" && outcome.why === "disk-full";
    const diskFailures = (task.diskFailures ?? 0) + (isDiskFull ? 1 : 0);
    const isGivenUp = isDiskFull && diskFailures >= MAX_DISK_FAILURES;
    const end = isGivenUp ? job.failed(outcome.cause) : outcome;
    let isSettledHere = false;
    const settled = await this.fleet.store.update(task.id, (current, finishedAtMs) => {
      isSettledHere = current.claim === token;
      if (!isSettledHere) return current;
      // A cancelled task does not go back into the queue.
      const recorded = end.state === "queued" && current.isCancelled ? job.failed(cancelled()) : end;
      if (recorded.state === "queued") return { ...current, claim: undefined, state: "queued", diskFailures };
      return { ...current, ...recorded, claim: undefined, finishedAtMs, endedAtMs: finishedAtMs };
    });
    if (settled === undefined || !isSettledHere) return;
    if (settled.state !== "queued") {
      const counted = job.seconds === null ? null : this.#count(job.seconds);
      await Promise.all([this.#complete(bull, token), counted, this.#cleanUp(settled)]);
      return;
    }
    const heldMs = requeueDelayMs(diskFailures - 1);
    if (isDiskFull) await bull.moveToDelayed((await this.fleet.redis.timeMs()) + heldMs, token);
    else await bull.moveToWait(token);
    await this.fleet.publish({ type: "queued", id: task.id, route: task.route ?? "" });
  }

  /**
   * Completes the job of a task. A failure does no harm: the next worker that gets the job finds that its
   * task has ended.
   */
  async #complete(bull: FleetJob, token: string): Promise<void> {
    try {
      await this.fleet.redis.attempt(() => bull.moveToCompleted(null, token, false));
    } catch (err) {
      this.log.debug({ task: bull.id, err }, "could not complete a job");
      // Removes the job if it is in no list. A job that another worker holds stays.
      await bull.remove().catch(() => {});
    }
  }

  async #count(seconds: number): Promise<void> {
    const key = redisKey("seconds");
    await this.fleet.redis.batch((pipeline) =>
      pipeline.lpush(key, seconds).ltrim(key, 0, this.options.averageWindow - 1),
    );
  }

  async #cleanUp(task: Task): Promise<void> {
    await this.runner.cleanUp(task).catch((err: unknown) => {
      this.log.error({ task: task.id, err }, "could not clean up after a task");
    });
  }
}
