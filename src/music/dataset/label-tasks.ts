/** Descriptions by the language model, asked for over HTTP. */
import { appendFile } from "node:fs/promises";
import type { MusicEngine } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { RequestError } from "../errors.js";
import { readyLanguageModel } from "../models.js";
import type { PermittedRoot } from "../permitted-root.js";
import { BackgroundTasks, type StartedTask } from "./background-tasks.js";
import { type SampleSummary, sampleSummary } from "./data-set-file.js";
import type { DataSetEditor } from "./editor.js";
import { type LabelOptions, labelSample } from "./label.js";
import { failureOf, type SampleFailure, withFailures } from "./sample-failure.js";

export interface LabelRequest extends LabelOptions {
  onlyUnlabeled: boolean;
  /** Where the data set is saved after every sample; null: nowhere. */
  savePath: string | null;
}

export interface LabelResult {
  message: string;
  labeled_count: number;
  samples: SampleSummary[];
}

interface LabelDetails {
  save_path: string | null;
  last_updated_index: number | null;
  last_updated_sample: SampleSummary | null;
}

export class LabelTasks {
  readonly #engine: MusicEngine;
  readonly #root: PermittedRoot;
  readonly #editor: DataSetEditor;
  readonly #tasks: BackgroundTasks<LabelResult, LabelDetails>;

  constructor(engine: MusicEngine, root: PermittedRoot, editor: DataSetEditor, log: Logger) {
    this.#engine = engine;
    this.#root = root;
    this.#editor = editor;
    this.#tasks = new BackgroundTasks("Labeling", log);
  }

  /**
   * Begins to describe the samples of the current data set; each is in it as soon as it is done.
   * @throws RequestError without a data set, for an unusable path, or where another labeling runs
   */
  async start(request: LabelRequest): Promise<StartedTask<LabelResult>> {
    const { savePath } = request;
    const { samples } = this.#editor.current;
    const file = savePath === null ? null : await this.#editor.resolveSavePath(savePath);
    const ids = samples
      .filter(({ labeled, caption }) => !request.onlyUnlabeled || !labeled || caption === "")
      .map(({ id }) => id);
    const details = { save_path: savePath, last_updated_index: null, last_updated_sample: null };
    return this.#tasks.start(ids.length, details, async ({ signal, report }) => {
      if (ids.length > 0) await readyLanguageModel(this.#engine, { signal }, request.lmModelPath);
      const failures: SampleFailure[] = [];
      for (const [done, id] of ids.entries()) {
        signal.throwIfAborted();
        const outcome = await this.#label(id, request, file, signal);
        if (outcome === null) continue;
        if ("reason" in outcome) failures.push(outcome);
        const isLabeled = "index" in outcome;
        report(
          done + 1,
          isLabeled ? { last_updated_index: outcome.index, last_updated_sample: outcome } : {},
        );
      }
      return this.#result(ids.length, failures);
    });
  }

  status(id: string | null) {
    return this.#tasks.status(id);
  }

  close(): Promise<void> {
    return this.#tasks.close();
  }

  /** The sample as it is then, or why it failed; null where it has left the data set. */
  async #label(
    id: string,
    request: LabelRequest,
    file: string | null,
    signal: AbortSignal,
  ): Promise<SampleSummary | SampleFailure | null> {
    const sample = this.#editor.find(id);
    if (sample === undefined) return null;
    try {
      const index = this.#editor.replace(
        await labelSample(this.#engine, this.#root, sample, request, signal),
      );
      if (index === null) return null;
      const summary = sampleSummary(this.#editor.sample(index), index);
      if (file !== null) await this.#keep(file, summary);
      return summary;
    } catch (error) {
      signal.throwIfAborted();
      return failureOf(error, sample.filename);
    }
  }

  /** The data set, and a line of what was done to it. */
  async #keep(file: string, summary: SampleSummary): Promise<void> {
    await this.#editor.write(file);
    const line = { ts: new Date().toISOString(), index: summary.index, status: "labeled", sample: summary };
    await appendFile(`${file}.autolabel.jsonl`, `${JSON.stringify(line)}\n`);
  }

  #result(total: number, failures: SampleFailure[]): LabelResult {
    const { samples } = this.#editor.current;
    if (total > 0 && failures.length === total) {
      const [first] = failures as [SampleFailure];
      throw new RequestError(`No sample could be labeled; ${first.filename}: ${first.reason}`);
    }
    const message =
      total === 0
        ? "✅ All samples already labeled"
        : withFailures(`✅ Labeled ${total - failures.length}/${total} samples`, failures);
    return {
      message,
      labeled_count: samples.filter(({ labeled }) => labeled).length,
      samples: samples.map(sampleSummary),
    };
  }
}
