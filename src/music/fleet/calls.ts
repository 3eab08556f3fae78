/**
 * What a gateway asks of a worker while a client waits: it is no task, as nobody wants the answer later. BullMQ gives each
 * question to one worker, to another one where that dies, and brings the answer back.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, Queue, QueueEvents, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { EngineError, type EngineErrorCode } from "../../engine/errors.js";
import { HttpError } from "../errors.js";
import type { Fleet } from "./fleet.js";
import { reached } from "./redis.js";

/** A language model writes for seconds, and others may come first. */
const ANSWER_MS = 120_000;
/** Whoever asked reads the answer within this. */
const KEPT = { age: 60 };

type Answer = { value: unknown } | { code: unknown; message: string };

/** The questions that every worker with a language model answers. */
export const WORDS = "words";

/** The questions about adapters that workers with the model in slot 1 answer. */
export function aboutAdaptersOf(model: string): string {
  return `adapters~${encodeURIComponent(model)}`;
}

export type Answering = (question: string, data: unknown, signal: AbortSignal) => Promise<unknown>;

export class Calls {
  readonly #asking = new Map<string, { queue: Queue; answers: QueueEvents }>();
  readonly #answering: Worker[] = [];
  readonly #closing = new AbortController();
  #patient: Redis | undefined;

  constructor(private readonly fleet: Fleet) {}

  /**
   * @throws HttpError 503 where nobody answers, FleetUnreachableError, the signal's reason, or what the worker threw: an
   * EngineError with its code and message
   */
  async ask<T>(whom: string, question: string, data: object, signal: AbortSignal | undefined): Promise<T> {
    const { queue, answers } = this.#asked(whom);
    const options = { removeOnComplete: KEPT, removeOnFail: KEPT };
    const job = (await reached(() => queue.add(question, data, options))) as Job<object, Answer>;
    const over = new AbortController();
    const gone = sleep(ANSWER_MS, undefined, { signal: anyOf(over.signal, signal), ref: false });
    try {
      const answer = await Promise.race([job.waitUntilFinished(answers), gone.catch(() => undefined)]);
      signal?.throwIfAborted();
      if (answer === undefined) throw unanswered(`within ${ANSWER_MS / 1000} seconds`);
      if ("value" in answer) return answer.value as T;
      throw new EngineError(answer.code as EngineErrorCode, answer.message);
    } finally {
      over.abort();
      // Nobody has begun it, or it ends in vain.
      await job.remove().catch(() => {});
    }
  }

  /** Answers, one question at a time, until `close`. */
  answer(whom: string, answering: Answering): void {
    const work = async ({ name, data }: Job): Promise<Answer> => {
      try {
        return { value: await answering(name, data, this.#closing.signal) };
      } catch (error) {
        const { code, message } = error as Error & { code?: unknown };
        this.fleet.log.info({ question: name, reason: message }, "a question was answered with an error");
        return { code, message };
      }
    };
    const lockDuration = this.fleet.leaseMs;
    const worker = new Worker(nameOf(whom), work, {
      ...this.#options(),
      lockDuration,
      stalledInterval: lockDuration,
    });
    worker.on("error", (err) => this.fleet.log.debug({ err }, "questions cannot be heard"));
    this.#answering.push(worker);
  }

  /** Ends what is being answered: another worker then gets it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#answering.map((worker) => worker.close(true).catch(() => {})));
    for (const { queue, answers } of this.#asking.values()) {
      await queue.close().catch(() => {});
      await answers.close().catch(() => {});
    }
    this.#patient?.disconnect();
  }

  #asked(whom: string) {
    const known = this.#asking.get(whom);
    if (known !== undefined) return known;
    const asked = {
      queue: new Queue(nameOf(whom), { ...this.fleet.bullOptions(), skipMetasUpdate: true }),
      answers: new QueueEvents(nameOf(whom), this.#options()),
    };
    const unheard = (err: Error) => this.fleet.log.debug({ err }, "answers cannot be heard");
    asked.queue.on("error", unheard);
    asked.answers.on("error", unheard);
    this.#asking.set(whom, asked);
    return asked;
  }

  /** BullMQ makes copies of the connection that wait: for questions, for answers, for Redis to come back. */
  #options() {
    if (this.#patient === undefined) {
      this.#patient = this.fleet.redis.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null });
      delete this.#patient.options.commandTimeout;
      this.#patient.on("error", (err) => this.fleet.log.debug({ err }, "no questions can be heard"));
    }
    return { ...this.fleet.bullOptions(), connection: this.#patient };
  }
}

function nameOf(whom: string): string {
  return `ask~${whom}`;
}

function anyOf(over: AbortSignal, signal: AbortSignal | undefined): AbortSignal {
  return signal === undefined ? over : AbortSignal.any([over, signal]);
}

function unanswered(reason: string): HttpError {
  return new HttpError(503, `No worker of the fleet answered ${reason}`, { "Retry-After": "10" });
}
