/** Accepts tasks: checks their texts and recordings, and queues each task only once. */
import type { z } from "zod";
import type { ModelCatalog, SheetWriter } from "../engine/types.js";
import { describe } from "../parameters.js";
import type { Caller } from "./access/concurrency-limit.js";
import { songOf } from "./audio/audio-files.js";
import type { Callbacks } from "./callbacks/callbacks.js";
import { HttpError, RequestError } from "./errors.js";
import type { Adapters } from "./models/adapters.js";
import { selectSlot } from "./models/models.js";
import type { acceptedTask } from "./openapi/answers.js";
import {
  DuplicateSubmissionError,
  type TaskOrigin,
  type TaskQueue,
  UncertainSubmissionError,
} from "./queue/task-queue.js";
import type { GenerationRequest } from "./request/generation-request.js";
import type { SubmissionKey } from "./request/idempotency.js";
import { checkTextLength } from "./song/language-model.js";
import type { SongRunner } from "./song/song-runner.js";
import { isWithin } from "./storage/permitted-root.js";
import { toRequestErrorIfPromptTooLong } from "./words/text-writer.js";

export type AcceptedTask = z.output<typeof acceptedTask>;

export class Submissions {
  /** Submissions in progress, by Idempotency-Key. */
  readonly #running = new Map<string, Promise<AcceptedTask>>();

  /** @param stopping aborts checks when the service stops */
  constructor(
    private readonly queue: TaskQueue,
    private readonly catalog: ModelCatalog,
    private readonly writer: SheetWriter,
    private readonly runner: SongRunner,
    private readonly adapters: Adapters,
    private readonly callbacks: Callbacks,
    private readonly stopping: AbortSignal,
  ) {}

  /**
   * Checks the recordings of a task and queues the task. The uploads of an accepted task are deleted together
   * with its songs, or when the task fails.
   * @param caller a disconnect of this client stops the check, but does not cancel an accepted task
   * @throws QueueFullError; HttpError 400 for an unusable recording, 429 if too many checks of the caller wait, 500
   * if the service stops; DecodeError for server errors; StoreError if the task cannot be recorded; the reason of
   * the caller's signal. After an error, no part of the task stays stored, except after UncertainSubmissionError: what
   * the storage does not delete now, a sweep deletes later. Published adapters are deleted when no task uses them.
   */
  async submit(
    request: GenerationRequest,
    caller: Caller,
    source: Pick<TaskOrigin, "client" | "submission" | "retakeOf"> = {},
  ): Promise<AcceptedTask> {
    await this.queue.assertRoom();
    this.runner.makeSongFolder();
    await checkTextLength(this.catalog, this.writer, request).catch((error: unknown) => {
      const refusal = toRequestErrorIfPromptTooLong(error);
      // Refuse only a text that is too long. Other errors will be reported when the task runs.
      if (refusal instanceof RequestError) throw refusal;
    });
    const signal = AbortSignal.any([caller.signal, this.stopping]);
    await this.callbacks.admit(request.callbackUrl, signal);
    const { inputs } = this.runner;
    const claimed = await inputs.claim(request, signal);
    try {
      const admitted = await inputs.admit(claimed, { ...caller, signal });
      const known = await this.#withSourceFacts(await this.#withAdapters(admitted, signal));
      const published = await inputs.publish(known, signal);
      const origin = { ...source, requestId: caller.requestId };
      const { task, position } = await this.queue.submit(published, origin).catch(async (error: unknown) => {
        const mayRun = error instanceof UncertainSubmissionError;
        if (published !== admitted && !mayRun) await inputs.release(published);
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
    const song = isWithin(this.runner.audioFiles.directory, source.path) ? songOf(source.path) : null;
    if (song === null) return request;
    const { result } = (await this.queue.get(song.taskId)) ?? {};
    const metas = result?.audioFiles[song.index]?.description?.metas;
    if (metas === undefined || !("bpm" in metas)) return request;
    const { bpm, keyscale, timesignature } = metas;
    const known = { bpm, keyScale: keyscale, timeSignature: timesignature };
    return { ...request, facts: { ...request.facts, source: known } };
  }

  /**
   * Resolves the adapters of the request. A request that lists none gets the loaded ones of its model.
   * @throws the errors of RequestedAdapters.resolveAll
   */
  async #withAdapters(request: GenerationRequest, signal: AbortSignal): Promise<GenerationRequest> {
    const { model } = selectSlot(this.catalog.slots(), request.model);
    const loras =
      request.loras === null
        ? await (model === null ? [] : this.adapters.active(model))
        : await this.runner.loras.resolveAll(request.loras, () => this.adapters.loaded(), signal);
    return { ...request, loras };
  }
}
