/** Accepts tasks: checks their texts and recordings, and queues each task only once. */
import type { z } from "zod";
import { describe } from "../parameters.js";
import type { Caller } from "./access/concurrency-limit.js";
import { songOf } from "./audio/audio-files.js";
import type { Callbacks } from "./callbacks/callbacks.js";
import { HttpError } from "./errors.js";
import type { Adapters } from "./models/adapters.js";
import type { acceptedTask } from "./openapi/answers.js";
import {
  DuplicateSubmissionError,
  type TaskOrigin,
  type TaskQueue,
  UncertainSubmissionError,
} from "./queue/task-queue.js";
import type { GenerationRequest } from "./request/generation-request.js";
import type { SubmissionKey } from "./request/idempotency.js";
import { isWithin } from "./storage/permitted-root.js";
import type { TaskFiles } from "./task-files.js";
import type { TextWriter } from "./words/text-writer.js";

export type AcceptedTask = z.output<typeof acceptedTask>;

export class Submissions {
  /** Submissions in progress, by Idempotency-Key. */
  readonly #running = new Map<string, Promise<AcceptedTask>>();

  /** @param stopping aborts checks when the service stops */
  constructor(
    private readonly queue: TaskQueue,
    private readonly files: TaskFiles,
    private readonly writer: TextWriter,
    private readonly adapters: Adapters,
    private readonly callbacks: Callbacks,
    private readonly stopping: AbortSignal,
  ) {}

  /**
   * Checks the recordings of a task and queues the task. The uploads of an accepted task are deleted together
   * with its songs, or when the task fails.
   * @param caller a disconnect of this client stops the check, but does not cancel an accepted task
   * @throws QueueFullError; HttpError 400 for an unusable recording, 429 if too many checks of the caller wait, 500
   * if the service stops; FfmpegError for server errors; StoreError if the task cannot be recorded; the reason of
   * the caller's signal. After an error, no part of the task stays stored, except after UncertainSubmissionError: what
   * the storage does not delete now, a sweep deletes later. Published adapters are deleted when no task uses them.
   */
  async submit(
    request: GenerationRequest,
    caller: Caller,
    source: Pick<TaskOrigin, "client" | "submission" | "retakeOf"> = {},
  ): Promise<AcceptedTask> {
    await this.queue.assertRoom();
    this.files.makeSongFolder();
    await this.writer.checkTextLength(request);
    const signal = AbortSignal.any([caller.signal, this.stopping]);
    await this.callbacks.admit(request.callbackUrl, signal);
    const { inputs } = this.files;
    const claimed = await inputs.claim(request, signal);
    try {
      const admitted = await inputs.admit(claimed, { ...caller, signal });
      const loras = await this.adapters.ofRequest(admitted, signal);
      const known = await this.#withSourceFacts({ ...admitted, loras });
      const published = await inputs.publish(known, signal);
      const origin = { ...source, requestId: caller.requestId };
      const { task, position } = await this.queue.submit(published, origin).catch(async (error: unknown) => {
        if (!(error instanceof UncertainSubmissionError)) await inputs.release(published);
        throw error;
      });
      return { task_id: task.id, status: "queued", queue_position: position, warnings: request.warnings };
    } catch (error) {
      if (!(error instanceof UncertainSubmissionError)) await inputs.unclaim(request, claimed);
      throw error;
    }
  }

  /**
   * Submits a task only once per Idempotency-Key. Concurrent submissions with the same key wait for the first.
   * Later ones get the response of the first. The key is valid as long as the task exists.
   * @throws HttpError 422 if the key was used for a different body
   */
  async submitOnce(key: SubmissionKey, submit: () => Promise<AcceptedTask>): Promise<AcceptedTask> {
    for (;;) {
      const pending = this.#running.get(key.key);
      if (pending === undefined) break;
      await pending.catch(() => {});
    }
    const id = await this.queue.submittedAs(key.key);
    if (id === undefined) {
      const pending = submit();
      this.#running.set(key.key, pending);
      try {
        return await pending;
      } catch (error) {
        if (!(error instanceof DuplicateSubmissionError)) throw error;
      } finally {
        this.#running.delete(key.key);
      }
      return this.submitOnce(key, submit);
    }
    const task = await this.queue.get(id);
    // The task and its key were deleted meanwhile.
    if (task?.submission === undefined) return this.submitOnce(key, submit);
    const { digest, position } = task.submission;
    if (digest !== key.digest) {
      throw new HttpError(
        422,
        `Idempotency-Key ${describe(key.key)} was used for a different body by task ${id}: send a new key`,
      );
    }
    return { task_id: id, status: "queued", queue_position: position, warnings: task.request.warnings };
  }

  /** Adds what the record of the source states, if the source is a finished song. */
  async #withSourceFacts(request: GenerationRequest): Promise<GenerationRequest> {
    const { source } = request;
    if (source === null || source.isUpload) return request;
    const song = isWithin(this.files.songs.directory, source.path) ? songOf(source.path) : null;
    if (song === null) return request;
    const { result } = (await this.queue.get(song.taskId)) ?? {};
    const metas = result?.audioFiles[song.index]?.description?.metas;
    if (metas === undefined || !("bpm" in metas)) return request;
    const { bpm, keyscale, timesignature } = metas;
    const known = { bpm, keyScale: keyscale, timeSignature: timesignature };
    return { ...request, facts: { ...request.facts, source: known } };
  }
}
