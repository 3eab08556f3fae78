/** Tasks and temporary folders for tests of the store and what stands on it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v4 as uuid } from "uuid";
import type { SongResult, Task } from "../../src/music/queue/store.js";

/** A folder that is gone when the test file ends. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "carillon-test-"));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function makeTask(change: Partial<Task> = {}): Task {
  return {
    id: uuid(),
    sequence: 1,
    state: "queued",
    createdAtMs: 1_765_000_000_000,
    finishedAtMs: null,
    interruptions: 0,
    request: { prompt: "slow bossa nova" } as Task["request"],
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
