/** Preparations asked for over HTTP. */
import type { MusicEngine } from "../../engine/types.js";
import type { Logger } from "../../log.js";
import { HttpError, RequestError } from "../errors.js";
import { createOutputDirectory } from "../output-directory.js";
import type { PermittedRoot } from "../permitted-root.js";
import { BackgroundTasks, type StartedTask } from "./background-tasks.js";
import type { DataSet } from "./data-set.js";
import { prepareDataSet } from "./prepare.js";
import { withFailures } from "./sample-failure.js";

export interface PreparationResult {
  message: string;
  output_dir: string;
  num_tensors: number;
}

export class PreparationTasks {
  readonly #engine: MusicEngine;
  readonly #root: PermittedRoot;
  readonly #tasks: BackgroundTasks<PreparationResult>;

  constructor(engine: MusicEngine, root: PermittedRoot, log: Logger) {
    this.#engine = engine;
    this.#root = root;
    this.#tasks = new BackgroundTasks("Preprocessing", log);
  }

  /**
   * Begins to prepare the labeled samples.
   * @throws RequestError where a path lies outside the root, nothing is labeled, or another preparation runs
   */
  async start(
    dataSet: DataSet,
    outputDir: string,
    skipExisting: boolean,
  ): Promise<StartedTask<PreparationResult>> {
    const outputDirectory = await this.#root.resolve(outputDir);
    if (this.#engine.slots()[0]?.model == null) throw new HttpError(500, "Model not initialized");
    const total = dataSet.samples.filter(({ labeled }) => labeled).length;
    if (total === 0) throw new RequestError("No labeled samples: describe them with a caption first");
    await createOutputDirectory(outputDirectory, outputDir);
    return this.#tasks.start(total, {}, async ({ signal, report }) => {
      const request = { dataSet, outputDirectory, skipExisting };
      const { files, failures } = await prepareDataSet(this.#engine, this.#root, request, {
        signal,
        onProgress: ({ done }) => report(done),
      });
      return {
        message: withFailures(`✅ Preprocessed ${files.length}/${total} samples to ${outputDir}`, failures),
        output_dir: outputDir,
        num_tensors: files.length,
      };
    });
  }

  status(id: string | null) {
    return this.#tasks.status(id);
  }

  close(): Promise<void> {
    return this.#tasks.close();
  }
}
