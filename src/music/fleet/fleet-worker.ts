/** A worker of a fleet: takes tasks that its models can serve, holds them by a lease, and records how they ended. */
import { once } from "node:events";
import { Worker } from "bullmq";
import { v4 as uuid } from "uuid";
import type { Logger } from "../../log.js";
import { StoreError } from "../errors.js";
import { hasEnded } from "../queue/catalog.js";
import { JobAborted, type Jobs } from "../queue/job-queue.js";
import { deathsMessage, holdMs, MAX_DEATHS, MAX_DISK_FAILURES } from "../queue/rules.js";
import { named, type Outcome, RunningJob, retryDelayMs, stopJobs } from "../queue/running-job.js";
import type { Task } from "../queue/store.js";
import type { TaskProgress } from "../song/progress.js";
import type { Fleet, FleetEvent, FleetJob, FleetJobData } from "./fleet.js";
import { keyOf, piped, reached } from "./redis.js";
import { type Announcement, HEARTBEAT_MS, routesOf } from "./workers.js";

/** So often a lease is renewed before it ends. */
const RENEWALS_PER_LEASE = 4;
/** How often a worker with a free place looks for tasks that it was not told of. */
const LOOK_MS = 1_000;
/** What workers with the model in memory have ahead of those that would load it first. */
const HEAD_START_MS = 300;
/** Progress goes to Redis at most so often, but for a new stage. */
const PROGRESS_MS = 100;
/** A worker that died told this much of its tasks at last. */
const PROGRESS_EXPIRY_MS = 60_000;

export interface FleetWorkerOptions {
  /** Unique in the fleet. */
  name: string;
  /** Tasks at a time. */
  places: number;
  /** 0: no limit. */
  jobTimeoutSeconds: number;
  /** Jobs over which the fleet averages. */
  averageWindow: number;
  /** What it has now. */
  describe(): Promise<Omit<Announcement, "name" | "places" | "running" | "is_draining">>;
  /** Begins to answer what is no task. */
  answer?(): void;
}

/** A task that this worker holds. */
interface Held {
  task: Task;
  job: RunningJob;
  bull: FleetJob;
  token: string;
  route: string;
  /** The ends of those that this worker held before. */
  company: Promise<void>[];
  ended: Promise<void>;
  /** Its task is another worker's, or was given back: whatever it still does is no longer heard. */
  isAbandoned: boolean;
}

export class FleetWorker {
  readonly #held = new Map<string, Held>();
  readonly #queues = new Map<string, Worker<FleetJobData, null, string>>();
  #routes: { route: string; isWarm: boolean }[] = [];
  /** Models that the fleet means others by. */
  #different: string[] = [];
  #timers: NodeJS.Timeout[] = [];
  #isTaking = false;
  #shallTakeAgain = false;
  #isDraining = false;
  readonly #stopping = new AbortController();

  constructor(
    private readonly fleet: Fleet,
    private readonly jobs: Jobs,
    private readonly options: FleetWorkerOptions,
    private readonly log: Logger,
  ) {}

  get running(): string[] {
    return [...this.#held.keys()];
  }

  /** Announces itself, and takes tasks from then on. The models are loaded before. */
  start(): void {
    this.fleet.told.on("event", (event) => this.#hear(event));
    this.fleet.told.on("back", () => void this.#beat());
    const every = (milliseconds: number, work: () => void) => setInterval(work, milliseconds).unref();
    this.#timers = [every(HEARTBEAT_MS, () => void this.#beat()), every(LOOK_MS, () => this.#look(true))];
    this.options.answer?.();
    void this.#beat();
  }

  /** As `JobQueue.stop`: what is not done within the grace goes back to the fleet. */
  async stop(graceSeconds: number): Promise<void> {
    this.#isDraining = true;
    await this.#beat();
    await stopJobs(this.#held, graceSeconds, this.#stopping, this.#settle.bind(this), this.log);
    for (const timer of this.#timers) clearInterval(timer);
    await this.fleet.workers.withdraw(this.options.name).catch(() => {});
    for (const queue of this.#queues.values()) await queue.close(true).catch(() => {});
  }

  async #beat(): Promise<void> {
    const { name, places, describe } = this.options;
    try {
      const described = await describe();
      const models = await this.fleet.workers.agreed(described.models);
      this.#complain(described.models.filter((model) => !models.includes(model)).map(({ name }) => name));
      const announcement = {
        ...described,
        models,
        name,
        places,
        running: this.running,
        is_draining: this.#isDraining,
      };
      this.#routes = routesOf(announcement);
      // Whoever drains is none that a new task could wait for.
      await this.fleet.workers.announce(this.#isDraining ? { ...announcement, models: [] } : announcement);
      this.#look(true);
    } catch (err) {
      this.log.debug({ err }, "this worker could not be announced");
    }
  }

  /** Once for each time that it is so. */
  #complain(different: string[]): void {
    for (const name of different) {
      if (this.#different.includes(name)) continue;
      const what = `the files of ${name} are not those of the fleet's other workers`;
      this.log.error(`${what}: this one gets no task for it while they are there`);
    }
    this.#different = different;
  }

  #hear(event: FleetEvent): void {
    if (event.type === "cancel") {
      this.#held.get(event.id)?.job.controller.abort(new JobAborted("cancelled", "Cancelled by user"));
    } else if (event.type === "queued") {
      const served = this.#routes.find(({ route }) => route === event.route);
      if (served === undefined) return;
      if (served.isWarm) this.#look(false);
      else setTimeout(() => this.#look(true), HEAD_START_MS).unref();
    }
  }

  /** Takes what there is, one look at a time. @param isCold also for models that would have to be loaded first */
  #look(isCold: boolean): void {
    if (this.#isTaking) {
      this.#shallTakeAgain = true;
      return;
    }
    this.#isTaking = true;
    this.#takeAll(isCold)
      .catch((err: unknown) => this.log.debug({ err }, "no task could be taken"))
      .finally(() => {
        this.#isTaking = false;
        if (this.#shallTakeAgain) this.#look(isCold);
        this.#shallTakeAgain = false;
      });
  }

  /** The queues take turns, so that none starves where several have tasks. */
  async #takeAll(isCold: boolean): Promise<void> {
    let isAnyTaken = true;
    while (isAnyTaken) {
      isAnyTaken = false;
      for (const { route, isWarm } of this.#routes) {
        if (!isWarm && !isCold) continue;
        if (this.#isDraining || this.#held.size >= this.options.places || this.#isSuspectHeld) return;
        if (await this.#take(route)) isAnyTaken = true;
      }
    }
  }

  async #take(route: string): Promise<boolean> {
    const token = uuid();
    const bull = await reached(() => this.#queueOf(route).getNextJob(token, { block: false }));
    if (bull === undefined) return false;
    const { task, isEndedHere } = await this.#claim(bull, token);
    if (task?.claim !== token) {
      await this.#complete(bull, token);
      if (task !== undefined && isEndedHere) await this.#tidyUp(task);
      return true;
    }
    const job = new RunningJob();
    const company = [...this.#held.values()].map((other) => other.ended);
    const work: Held = {
      task,
      job,
      bull,
      token,
      route,
      company,
      ended: Promise.resolve(),
      isAbandoned: false,
    };
    this.#held.set(task.id, work);
    work.ended = this.#work(work).finally(() => {
      this.#held.delete(task.id);
      this.#look(true);
    });
    return true;
  }

  #queueOf(route: string): Worker<FleetJobData, null, string> {
    const known = this.#queues.get(route);
    if (known !== undefined) return known;
    const manual = {
      autorun: false,
      skipStalledCheck: true,
      skipLockRenewal: true,
      lockDuration: this.fleet.leaseMs,
    };
    const queue = new Worker<FleetJobData, null, string>(route, null, {
      ...this.fleet.bullOptions(),
      ...manual,
    });
    queue.on("error", (err) => this.log.debug({ err }, "a queue cannot reach Redis"));
    this.#queues.set(route, queue);
    return queue;
  }

  /** The task as this worker's own, or as it is where it has ended, was cancelled, or was a worker's death too often. */
  async #claim(bull: FleetJob, claim: string): Promise<{ task: Task | undefined; isEndedHere: boolean }> {
    let isEndedHere = false;
    const task = await this.fleet.store.update(bull.id as string, (current, finishedAtMs) => {
      isEndedHere = false;
      if (hasEnded(current.state)) return current;
      const interruptions = current.interruptions + (current.state === "running" ? 1 : 0);
      const ended = {
        ...current,
        interruptions,
        state: "failed",
        finishedAtMs,
        endedAtMs: Date.now(),
      } as const;
      isEndedHere = true;
      if (current.isCancelled) return { ...ended, claim: undefined, error: "Cancelled by user" };
      if (interruptions >= MAX_DEATHS.fleet) {
        return { ...ended, claim: undefined, error: deathsMessage(interruptions) };
      }
      isEndedHere = false;
      return { ...current, state: "running", interruptions, claim, startedAtMs: Date.now() };
    });
    return { task, isEndedHere };
  }

  async #work(work: Held): Promise<void> {
    const { task, job } = work;
    const renewing = setInterval(
      () => void this.#renew(work),
      this.fleet.leaseMs / RENEWALS_PER_LEASE,
    ).unref();
    try {
      this.log.info({ ...named(task), interruptions: task.interruptions }, "task begins");
      await this.#untilAlone(work);
      const outcome = await job.run(task, this.jobs, {
        timeoutSeconds: this.options.jobTimeoutSeconds,
        onProgress: this.#reporter(task),
        log: this.log,
      });
      // The device is lost, and the process is about to end.
      if (outcome === null) this.#isDraining = true;
      if (outcome === null || work.isAbandoned) return;
      await this.#recordEnd(work, outcome);
    } catch (err) {
      this.log.error({ ...named(task), err }, "the end of a task cannot be recorded");
    } finally {
      clearInterval(renewing);
    }
  }

  /** A task that was interrupted runs alone: the next interruption is then not another's doing. */
  async #untilAlone({ task, job, company }: Held): Promise<void> {
    if (task.interruptions === 0) return;
    const { signal } = job.controller;
    await Promise.race([Promise.all(company), signal.aborted || once(signal, "abort")]);
  }

  get #isSuspectHeld(): boolean {
    return [...this.#held.values()].some(({ task }) => task.interruptions > 0);
  }

  /** Holds on to the task; finds out where it is no longer this worker's. */
  async #renew(work: Held): Promise<void> {
    const { task, bull, token, route, job } = work;
    try {
      const isRenewed = await bull.extendLock(token, this.fleet.leaseMs).catch(() => 0);
      if (isRenewed === 1) return;
      const current = await this.fleet.store.get(task.id);
      if (current?.claim === token) {
        // Redis was away for longer than the lease, and nobody has taken the task yet.
        const lock = this.fleet.jobKey(route, task.id, ":lock");
        await reached(() => this.fleet.redis.set(lock, token, "PX", this.fleet.leaseMs, "NX"));
      } else {
        work.isAbandoned = true;
        job.controller.abort(new JobAborted("superseded", "another worker has the task"));
      }
    } catch (err) {
      this.log.debug({ ...named(task), err }, "a lease could not be renewed");
    }
  }

  #reporter({ id, requestId }: Task): (progress: TaskProgress) => void {
    let toldMs = Number.NEGATIVE_INFINITY;
    let stage = "";
    const tell = async (progress: TaskProgress) => {
      const key = keyOf("progress", id);
      await reached(() => this.fleet.redis.set(key, JSON.stringify(progress), "PX", PROGRESS_EXPIRY_MS));
      await this.fleet.tell({ type: "progress", id, progress, request: requestId });
    };
    return (told) => {
      // Gateways have no way to what a worker holds in memory.
      const progress = { ...told, previewSeconds: 0 };
      const nowMs = performance.now();
      if (progress.stage === stage && nowMs - toldMs < PROGRESS_MS) return;
      toldMs = nowMs;
      stage = progress.stage;
      tell(progress).catch((err: unknown) => this.log.debug({ task: id, err }, "progress was not told"));
    };
  }

  /** Tries until Redis takes it, or the worker stops. */
  async #recordEnd(work: Held, outcome: Outcome): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#settle(work, outcome);
        return;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (attempt === 0) {
          this.log.error({ ...named(work.task), err: error }, "the end of a task cannot be recorded");
        }
        const { signal } = this.#stopping;
        const over = AbortSignal.any([signal, AbortSignal.timeout(retryDelayMs(attempt))]);
        await once(this.fleet.told, "back", { signal: over }).catch(() => {});
        if (signal.aborted || work.isAbandoned) return;
      }
    }
  }

  async #settle({ task, job, bull, token }: Held, outcome: Outcome): Promise<void> {
    const isDiskFull = outcome.state === "queued" && outcome.why === "disk-full";
    const diskFailures = (task.diskFailures ?? 0) + (isDiskFull ? 1 : 0);
    const isGivenUp = isDiskFull && diskFailures >= MAX_DISK_FAILURES;
    const end = isGivenUp ? job.failed(outcome.cause) : outcome;
    const settled = await this.fleet.store.update(task.id, (current, finishedAtMs) => {
      if (current.claim !== token) return current;
      if (end.state === "queued") return { ...current, claim: undefined, state: "queued", diskFailures };
      return { ...current, ...end, claim: undefined, finishedAtMs, endedAtMs: Date.now() };
    });
    if (settled === undefined || settled.claim !== undefined || settled.state !== end.state) return;
    if (end.state !== "queued") {
      const counted = job.seconds === null ? null : this.#count(job.seconds);
      await Promise.all([this.#complete(bull, token), counted, this.#tidyUp(settled)]);
      return;
    }
    if (isDiskFull) await bull.moveToDelayed(Date.now() + holdMs(diskFailures - 1), token);
    else await bull.moveToWait(token);
    await this.fleet.tell({ type: "queued", id: task.id, route: task.route ?? "" });
  }

  /** A lock that is gone does not matter: whoever gets the job next finds its task ended. */
  async #complete(bull: FleetJob, token: string): Promise<void> {
    await bull.moveToCompleted(null, token, false).catch((err: unknown) => {
      this.log.debug({ task: bull.id, err }, "a job could not be closed");
    });
  }

  async #count(seconds: number): Promise<void> {
    const key = keyOf("seconds");
    const counted = this.fleet.redis
      .pipeline()
      .lpush(key, seconds)
      .ltrim(key, 0, this.options.averageWindow - 1);
    await reached(() => piped(counted));
  }

  async #tidyUp(task: Task): Promise<void> {
    await this.jobs.ended(task).catch((err: unknown) => {
      this.log.error({ task: task.id, err }, "what belonged to a task could not be removed");
    });
  }
}
