/**
 * The data set that the endpoints edit. There is one at a time, in memory until it is saved. Every edit replaces the
 * immutable data set, so that a running preparation keeps the one it started with.
 */
import { dirname, extname } from "node:path";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { UnusableFileError } from "../../system/regular-file.js";
import { HttpError, RequestError } from "../errors.js";
import type { DataSetChange, SampleChange, ScanRequest } from "../request/training-bodies.js";
import type { PermittedRoot } from "../storage/permitted-root.js";
import { type DataSet, type DataSetSample, loadDataSet, saveDataSet } from "./data-set.js";
import { findRecordings } from "./find-recordings.js";
import { scanFolder } from "./scan.js";

export class DataSetEditor {
  #current: DataSet | null = null;

  constructor(private readonly root: PermittedRoot) {}

  /** @throws RequestError before the first scan or load */
  get current(): DataSet {
    if (this.#current === null) throw new RequestError("No dataset loaded");
    return this.#current;
  }

  /** Creates a data set from a folder; see `scanFolder`. @returns its warnings */
  async scan(request: ScanRequest): Promise<string[]> {
    const { dataSet, warnings } = await scanFolder(request, this.root);
    this.#current = dataSet;
    return warnings;
  }

  /**
   * Loads a data set, and finds the recordings of one that was made on another machine; see `findRecordings`.
   * @returns warnings about ignored values and missing recordings
   * @throws RequestError if the file is not a data set or is outside the root
   */
  async load(path: string): Promise<string[]> {
    const file = await this.root.resolve(path);
    const loaded = await loadDataSet(file);
    const { dataSet, warnings } = await findRecordings(loaded.dataSet, dirname(file), this.root);
    this.#current = dataSet;
    return [...loaded.warnings, ...warnings];
  }

  /** @throws RequestError if there is no data set, or if the file at `path` is not a data set */
  async save(path: string, change: DataSetChange): Promise<void> {
    if (this.#current === null) throw new RequestError("No dataset to save");
    const file = await this.resolveSavePath(path);
    this.#current = changed(this.#current, change);
    await saveDataSet(this.#current, file);
  }

  /** Resolves a client's `save_path` and checks that it may be written. @throws RequestError */
  async resolveSavePath(path: string): Promise<string> {
    const file = await this.root.resolve(path);
    if (extname(file) !== ".json") throw new RequestError(`save_path must end in .json, got ${path}`);
    await assertReplaceable(file);
    return file;
  }

  async write(file: string): Promise<void> {
    await saveDataSet(this.current, file);
  }

  /** @throws HttpError 404 if there is no such sample */
  sample(index: number): DataSetSample {
    const { samples } = this.current;
    const sample = samples[index];
    if (sample === undefined) {
      throw new HttpError(
        404,
        `Sample index ${index} out of range: the data set has ${samples.length} samples`,
      );
    }
    return sample;
  }

  find(id: string): DataSetSample | undefined {
    return this.current.samples.find((sample) => sample.id === id);
  }

  /** Replaces the sample with the same id. @returns its index; null if it was removed */
  replace(sample: DataSetSample): number | null {
    const index = this.current.samples.findIndex(({ id }) => id === sample.id);
    if (index < 0) return null;
    this.#current = { ...this.current, samples: this.current.samples.with(index, sample) };
    return index;
  }

  /** Changes a sample and marks it as labeled. */
  update(index: number, { is_instrumental, ...change }: SampleChange): DataSetSample {
    const old = this.sample(index);
    const hasLyrics = change.lyrics !== "" && change.lyrics !== INSTRUMENTAL_LYRICS;
    const withoutWords = { is_instrumental: true, lyrics: INSTRUMENTAL_LYRICS };
    const sample = {
      ...old,
      ...change,
      labeled: true,
      ...((is_instrumental ?? !hasLyrics) ? withoutWords : { is_instrumental: false }),
    };
    this.replace(sample);
    return sample;
  }
}

function changed(dataSet: DataSet, change: DataSetChange): DataSet {
  const given: Partial<DataSet> = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== null),
  );
  const { custom_tag } = given;
  const samples =
    custom_tag === undefined ? dataSet.samples : dataSet.samples.map((sample) => ({ ...sample, custom_tag }));
  return { ...dataSet, ...given, samples };
}

/** Only data sets may be overwritten: the root may contain other JSON files. */
async function assertReplaceable(file: string): Promise<void> {
  try {
    await loadDataSet(file);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (error.cause instanceof UnusableFileError && error.cause.reason === "absent") return;
    throw new RequestError(`save_path ${file} exists and is not a data set; choose another name`, {
      cause: error,
    });
  }
}
