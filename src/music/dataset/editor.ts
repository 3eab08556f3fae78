/** The data set that the endpoints work on: one at a time, in memory until it is saved. */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { HttpError, RequestError } from "../errors.js";
import type { PermittedRoot } from "../permitted-root.js";
import type { DataSetChange, SampleChange, ScanRequest } from "../request/data-set-bodies.js";
import { type DataSet, type DataSetSample, loadDataSet, parseDataSet, saveDataSet } from "./data-set.js";
import { scanFolder } from "./scan.js";

export class DataSetEditor {
  #current: DataSet | null = null;

  constructor(private readonly root: PermittedRoot) {}

  /** @throws RequestError before the first scan or load */
  get current(): DataSet {
    if (this.#current === null) throw new RequestError("No dataset loaded");
    return this.#current;
  }

  /** Makes a data set of a folder; see `scanFolder`. @returns its warnings */
  async scan(request: ScanRequest): Promise<string[]> {
    const { dataSet, warnings } = await scanFolder(request, this.root);
    this.#current = dataSet;
    return warnings;
  }

  /** @throws RequestError for a file that is no data set, or lies outside the root */
  async load(path: string): Promise<void> {
    this.#current = await loadDataSet(await this.root.resolve(path));
  }

  /** @throws RequestError without a data set, and for a path that is taken by something else */
  async save(path: string, change: DataSetChange): Promise<void> {
    if (this.#current === null) throw new RequestError("No dataset to save");
    const file = await this.resolveSavePath(path);
    this.#current = changed(this.#current, change);
    await saveDataSet(this.#current, file);
  }

  /**
   * The file that a client's path stands for.
   * @throws RequestError for a path outside the root, of another extension, or taken by something else
   */
  async resolveSavePath(path: string): Promise<string> {
    const file = await this.root.resolve(path);
    if (extname(file) !== ".json") throw new RequestError(`save_path must end in .json, got ${path}`);
    await assertReplaceable(file);
    return file;
  }

  /** Writes the data set as it is to a file that `resolveSavePath` gave. */
  async write(file: string): Promise<void> {
    await saveDataSet(this.current, file);
  }

  /** @throws HttpError 404 where there is no such sample */
  sample(index: number): DataSetSample {
    const { samples } = this.current;
    const sample = samples[index];
    if (sample === undefined) {
      throw new HttpError(404, `Sample index ${index} out of range: there are ${samples.length}`);
    }
    return sample;
  }

  find(id: string): DataSetSample | undefined {
    return this.current.samples.find((sample) => sample.id === id);
  }

  /** Puts the sample in the place of the one with its id. @returns its index, null where there is none any more */
  replace(sample: DataSetSample): number | null {
    const index = this.current.samples.findIndex(({ id }) => id === sample.id);
    if (index < 0) return null;
    this.#current = { ...this.current, samples: this.current.samples.with(index, sample) };
    return index;
  }

  /** Describes a sample, which then counts as labeled. */
  update(index: number, { isInstrumental, ...change }: SampleChange): DataSetSample {
    const old = this.sample(index);
    const hasLyrics = change.lyrics !== "" && change.lyrics !== INSTRUMENTAL_LYRICS;
    const withoutWords = { isInstrumental: true, lyrics: INSTRUMENTAL_LYRICS, language: "unknown" };
    const sample = {
      ...old,
      ...change,
      labeled: true,
      ...((isInstrumental ?? !hasLyrics) ? withoutWords : { isInstrumental: false }),
    };
    this.replace(sample);
    return sample;
  }
}

function changed(dataSet: DataSet, change: DataSetChange): DataSet {
  const given: Partial<DataSet> = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== null),
  );
  const { customTag } = given;
  const samples =
    customTag === undefined ? dataSet.samples : dataSet.samples.map((sample) => ({ ...sample, customTag }));
  return { ...dataSet, ...given, samples };
}

/** What is there must be a data set itself: the root may hold other JSON. */
async function assertReplaceable(file: string): Promise<void> {
  const content = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new RequestError(`save_path ${file} cannot be written: ${error.message}`, { cause: error });
  });
  if (content === null) return;
  try {
    parseDataSet(content, file);
  } catch (error) {
    throw new RequestError(`save_path ${file} exists and is no data set`, { cause: error });
  }
}
