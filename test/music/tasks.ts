/** Tasks, queues and temporary folders for tests. */

import { randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import type { CatalogFilter } from "../../src/music/queue/catalog.js";
import { EmbeddedQueue, type QueueOptions } from "../../src/music/queue/embedded-queue.js";
import type { LmdbTaskStore } from "../../src/music/queue/lmdb-store.js";
import type { SongResult, Task } from "../../src/music/queue/store.js";
import type { TaskRunner } from "../../src/music/queue/task-queue.js";
import type { GenerationRequest } from "../../src/music/request/generation-request.js";
import { parse } from "./request/request-parsing.js";

/**
 * Creates a folder that is deleted at the end of the test file. The deletion is retried, because a server may still
 * write into the folder until a later hook stops the server.
 */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-"));
  after(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  return directory;
}

/** A request with default parameters, except for these words. */
export function makeRequest(words: Partial<GenerationRequest["words"]>): GenerationRequest {
  const request = parse({});
  return { ...request, words: { ...request.words, ...words } };
}

export function makeTask(change: Partial<Task> = {}): Task {
  return {
    id: randomUUID(),
    sequence: 1,
    state: "queued",
    createdAtMs: 1_765_000_000_000,
    finishedAtMs: null,
    interruptions: 0,
    request: makeRequest({ prompt: "slow bossa nova" }),
    result: null,
    error: null,
    progress: 0,
    ...change,
  };
}

export function makeResult(change: Partial<SongResult> = {}): SongResult {
  return {
    prompt: "slow bossa nova",
    lyrics: "[Instrumental]",
    caption: "slow bossa nova",
    vocalLanguage: "en",
    metas: {
      bpm: 84,
      duration: 10,
      genres: "",
      keyscale: "F major",
      timesignature: "4",
      prompt: "bossa nova",
      lyrics: "",
    },
    generationInfo: "",
    seeds: [17],
    lmModel: "",
    ditModel: "carillon-nano",
    audioFiles: [],
    analysis: null,
    warnings: [],
    ...change,
  };
}

/** Filter for a page of all tasks. */
export const EVERY_TASK: CatalogFilter = {
  ids: null,
  order: "newest",
  state: null,
  favorite: null,
  analysis: null,
  temporary: null,
  retakesOf: null,
  search: "",
  offset: 0,
  limit: 100,
};

/** Creates an embedded queue without opening it. */
export function embeddedQueue(
  store: LmdbTaskStore,
  jobs: TaskRunner,
  options: Partial<QueueOptions> = {},
): EmbeddedQueue {
  const clock = { nowMs: Date.now, start: async () => {}, save: async () => {} };
  const limits = { capacity: 2, workers: 1, jobTimeoutSeconds: 0, averageJobSeconds: 5, averageWindow: 3 };
  return new EmbeddedQueue(store, jobs, { ...limits, clock, ...options }, pino({ level: "silent" }));
}

/** Creates an embedded queue that is never started. */
export function idleQueue(store: LmdbTaskStore): EmbeddedQueue {
  return embeddedQueue(store, { run: () => Promise.reject(new Error("idle")), cleanUp: async () => {} });
}
