/**
 * In-memory index of the tasks in a store. With it, lists and searches need not read task records, which may be
 * large.
 */
import { basename } from "node:path";
import { z } from "zod";
import { keptUploads } from "../request/replay.js";
import type { LmdbTaskStore } from "./lmdb-store.js";
import { filesOf, isTemporary, type StoredTask, TASK_STATES, type Task, type TaskState } from "./store.js";

/** A search reads only this many characters at the start of each text of a task. */
const MAX_SEARCHED = 512;

export const summarySchema = z.object({
  id: z.string(),
  sequence: z.number(),
  state: z.enum(TASK_STATES),
  isFavorite: z.boolean(),
  isAnalysis: z.boolean().default(false),
  isTemporary: z.boolean().default(false),
  submissionKey: z.string().optional(),
  retakeOf: z.string().optional(),
  /** Text for searching, in lower case: title, prompt, sample query, caption and lyrics. */
  words: z.string(),
  /** Time on the retention clock (Redis's clock in a fleet) when the task ended; null until then. */
  finishedAtMs: z.number().nullable(),
  audioNames: z.array(z.string()),
  /** File names of the uploads that are kept with the task's songs. */
  uploadNames: z.array(z.string()).default([]),
  /** Total size of the song and upload files. */
  audioBytes: z.number(),
  recordBytes: z.number(),
});
export type TaskSummary = z.output<typeof summarySchema>;

export function summaryOf(task: Task, recordBytes: number): TaskSummary {
  const { id, sequence, state, favorite = false, submission, retakeOf, title = "", request, result } = task;
  const { prompt, sampleQuery, lyrics } = request.words;
  // Cut the texts before joining them: a substring of the joined text would keep all of it in memory.
  const words = [title, prompt, sampleQuery, result?.prompt, lyrics]
    .map((text) => text?.slice(0, MAX_SEARCHED))
    .join("\n")
    .toLowerCase();
  const files = filesOf(result);
  const uploads = keptUploads(task);
  return {
    id,
    sequence,
    state,
    isFavorite: favorite,
    isAnalysis: request.analysis !== null,
    isTemporary: isTemporary(task),
    submissionKey: submission?.key,
    retakeOf,
    words,
    finishedAtMs: task.finishedAtMs ?? (hasEnded(state) ? task.createdAtMs : null),
    audioNames: files.map(({ name }) => name),
    uploadNames: uploads.map(({ path }) => basename(path)),
    audioBytes: [...files, ...uploads].reduce((sum, { bytes = 0 }) => sum + bytes, 0),
    recordBytes,
  };
}

export function hasEnded(state: TaskState): boolean {
  return state === "succeeded" || state === "failed";
}

function fits(filter: CatalogFilter): (summary: TaskSummary) => boolean {
  const { state, favorite, analysis, temporary, retakesOf, search } = filter;
  const ids = filter.ids && new Set(filter.ids);
  const words = search.toLowerCase().split(/\s+/);
  return (summary) =>
    (state === null || summary.state === state) &&
    (favorite === null || summary.isFavorite === favorite) &&
    (analysis === null || summary.isAnalysis === analysis) &&
    (temporary === null || summary.isTemporary === temporary) &&
    (ids === null || ids.has(summary.id)) &&
    (retakesOf === null || summary.id === retakesOf || summary.retakeOf === retakesOf) &&
    words.every((word) => summary.words.includes(word));
}

const COMPARE: Record<TaskOrder, (a: TaskSummary, b: TaskSummary) => number> = {
  newest: (a, b) => b.sequence - a.sequence,
  oldest: (a, b) => a.sequence - b.sequence,
  // Compares `words`, which begins with the title, or with the prompt if the task has no title.
  title: (a, b) => BY_WORDS.compare(a.words.trimStart(), b.words.trimStart()) || b.sequence - a.sequence,
};
const BY_WORDS = new Intl.Collator("en", { numeric: true });

/** Returns the ids on one page of the matching tasks, and the number of all matching tasks. */
export function pageOf(
  summaries: Iterable<TaskSummary>,
  filter: CatalogFilter,
): { total: number; ids: string[] } {
  const fitting = [...summaries].filter(fits(filter));
  fitting.sort(COMPARE[filter.order]);
  const { offset, limit } = filter;
  return { total: fitting.length, ids: fitting.slice(offset, offset + limit).map(({ id }) => id) };
}

export const TASK_ORDERS = ["newest", "oldest", "title"] as const;
type TaskOrder = (typeof TASK_ORDERS)[number];

export interface CatalogFilter {
  /** Ids of the tasks to list; null: any. */
  ids: readonly string[] | null;
  /** State of the tasks to list; null: any. */
  state: TaskState | null;
  favorite: boolean | null;
  /** true: only analyses; false: only tasks that make songs; null: both. */
  analysis: boolean | null;
  /** true: only tasks that expire after an hour; false: only others; null: both. */
  temporary: boolean | null;
  /** Id of a task: list only that task and its retakes; null: list all tasks. */
  retakesOf: string | null;
  /** Words that must all occur in the title, prompt or lyrics. Case is ignored. */
  search: string;
  order: TaskOrder;
  offset: number;
  limit: number;
}

/**
 * Task store with an in-memory index. The index is complete once `scan` has yielded all tasks. Keeps ended tasks in
 * memory while the store cannot be written.
 */
export class CatalogedStore {
  readonly #summaries = new Map<string, TaskSummary>();
  readonly #bySubmission = new Map<string, string>();
  /** Tasks that differ from their records. */
  readonly #kept = new Map<string, Task>();

  constructor(private readonly store: LmdbTaskStore) {}

  page(filter: CatalogFilter): { total: number; ids: string[] } {
    return pageOf(this.#summaries.values(), filter);
  }

  submittedAs(key: string): string | undefined {
    return this.#bySubmission.get(key);
  }

  summary(id: string): TaskSummary | undefined {
    return this.#summaries.get(id);
  }

  finished(): TaskSummary[] {
    const ended = [...this.#summaries.values()].filter(({ state }) => hasEnded(state));
    return ended.sort((a, b) => (a.finishedAtMs as number) - (b.finishedAtMs as number));
  }

  async add(task: Task): Promise<void> {
    this.#note(task, await this.store.add(task));
  }

  async get(id: string): Promise<Task | undefined> {
    return this.#kept.get(id) ?? this.store.get(id);
  }

  async update(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const updated = await this.store.update(id, (stored) => change(this.#kept.get(id) ?? stored));
    this.#kept.delete(id);
    if (updated !== undefined) this.#note(updated.task, updated.bytes);
    return updated?.task;
  }

  /** Changes a task in memory, because its record cannot be written. `storeKept` stores it later. */
  async keep(id: string, change: (task: Task) => Task): Promise<Task | undefined> {
    const current = await this.get(id);
    if (current === undefined) return undefined;
    const task = change(current);
    this.#kept.set(id, task);
    this.#note(task, this.#summaries.get(id)?.recordBytes ?? 0);
    return task;
  }

  /** Stores the tasks that are only in memory. @throws StoreError while the store cannot be written */
  async storeKept(): Promise<void> {
    for (const id of this.#kept.keys()) await this.update(id, (task) => task);
  }

  async remove(id: string): Promise<void> {
    const summary = this.#summaries.get(id);
    // Remove the task from the index first, so that a concurrent call does not remove it a second time.
    this.#summaries.delete(id);
    try {
      await this.store.remove(id);
    } catch (error) {
      if (summary !== undefined) this.#summaries.set(id, summary);
      throw error;
    }
    this.#kept.delete(id);
    if (summary?.submissionKey !== undefined) this.#bySubmission.delete(summary.submissionKey);
  }

  async *scan(): AsyncIterable<StoredTask> {
    for await (const stored of this.store.scan()) {
      if (stored.task !== null) this.#note(stored.task, stored.bytes);
      yield stored;
    }
  }

  /** Adds or updates a task in the index. */
  #note(task: Task, bytes: number): void {
    const summary = summaryOf(task, bytes);
    this.#summaries.set(task.id, summary);
    if (summary.submissionKey !== undefined) this.#bySubmission.set(summary.submissionKey, task.id);
  }
}
