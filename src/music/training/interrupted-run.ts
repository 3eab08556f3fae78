/** Keeps the request of the run in progress on disk, so that a run can be resumed after the server was killed or restarted. */
import { open, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writeAtomically } from "../../system/atomic-file.js";
import { MAX_TEXT_BYTES, readTextIfPresent } from "../../system/regular-file.js";
import { CHECKPOINTS } from "../models/style-folder.js";
import type { interruptedRun } from "../openapi/answers.js";
import type { PermittedRoot } from "../storage/permitted-root.js";
import { latestCheckpoint } from "./export.js";

const FILE = ".run-in-progress.json";
/** The last lines of a log are within so many bytes of its end. */
const LOG_END_BYTES = 4096;

const recordSchema = z.object({
  adapter_type: z.enum(["lora", "lokr"]),
  output_dir: z.string(),
  /** Request body without unset parameters. */
  parameters: z.looseObject({ resume_from: z.string().optional() }),
  started_at_ms: z.number(),
});

type Request = Omit<z.output<typeof recordSchema>, "started_at_ms">;
export type InterruptedRun = z.output<typeof interruptedRun>;

export class RunRecord {
  /** @param onDamaged called when the record cannot be read; it is removed, and the run cannot be resumed by it */
  constructor(
    private readonly root: PermittedRoot,
    private readonly onDamaged: (error: Error) => void,
  ) {}

  async write(request: Request): Promise<void> {
    const text = JSON.stringify({ ...request, started_at_ms: Date.now() });
    await writeAtomically(this.#path, (partial) => writeFile(partial, text));
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  /** Returns the run that an earlier process of the server did not end. */
  async interrupted(): Promise<InterruptedRun | null> {
    const record = await this.#read();
    if (record === null) return null;
    const { started_at_ms: startedAtMs, ...request } = record;
    const { resume_from: resumedFrom = null, ...parameters } = request.parameters;
    const directory = await this.root.resolve(request.output_dir);
    // The folder may have logs and checkpoints of an earlier run. A resumed run continues its log.
    const checkpoint = await latestCheckpoint(join(directory, CHECKPOINTS), startedAtMs);
    const log = join(directory, "logs/metrics.jsonl");
    return {
      ...request,
      parameters,
      current_step: await lastStep(log, resumedFrom === null ? startedAtMs : 0),
      resume_from: checkpoint === null ? resumedFrom : this.root.shorten(checkpoint),
    };
  }

  async #read() {
    const text = await readTextIfPresent(this.#path, MAX_TEXT_BYTES);
    if (text === null) return null;
    try {
      return recordSchema.parse(JSON.parse(text));
    } catch (error) {
      await this.remove();
      this.onDamaged(error as Error);
      return null;
    }
  }

  get #path(): string {
    return join(this.root.directory, FILE);
  }
}

/** Last step in a log of metrics; 0 if the log is missing or older than `sinceMs`. */
async function lastStep(path: string, sinceMs: number): Promise<number> {
  const found = await stat(path).catch(() => null);
  if (found === null || !found.isFile() || found.mtimeMs < sinceMs) return 0;
  const file = await open(path);
  try {
    const start = Math.max(0, found.size - LOG_END_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOG_END_BYTES), 0, LOG_END_BYTES, start);
    const steps = [...buffer.toString("utf8", 0, bytesRead).matchAll(/"step": ?(\d+)[,}]/g)];
    return Number(steps.at(-1)?.[1] ?? 0);
  } finally {
    await file.close();
  }
}
