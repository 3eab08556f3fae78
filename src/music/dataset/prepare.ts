/** Turns the described samples of a data set into the files that adapter training reads. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { MusicEngine } from "../../engine/types.js";
import { decodeAudio } from "../decode.js";
import { RequestError } from "../errors.js";
import type { PermittedRoot } from "../permitted-root.js";
import { type DataSet, type DataSetSample, INSTRUMENTAL, trainingPrompts } from "./data-set.js";
import { metadataFields } from "./data-set-file.js";
import { writeJson } from "./json-file.js";
import { failureOf, type SampleFailure } from "./sample-failure.js";
import { MANIFEST_NAME } from "./sample-set.js";

/** Longer music is cut, as everywhere in this ecosystem. */
export const MAX_SECONDS = 240;
const CHANNELS = 2;
const SAMPLE_RATE = 48_000;

export interface PreparationRequest {
  dataSet: DataSet;
  /** Absolute; exists. */
  outputDirectory: string;
  /** Leave files that are there already as they are. */
  skipExisting: boolean;
}

export interface PreparationProgress {
  /** Samples so far, failed ones included. */
  done: number;
  total: number;
  /** The file that comes next. */
  filename: string;
}

export interface PreparationCall {
  signal: AbortSignal;
  onProgress?: (progress: PreparationProgress) => void;
}

export interface Preparation {
  /** Absolute paths, in the order of the data set; files that were there already count. */
  files: string[];
  failures: SampleFailure[];
}

/**
 * Writes one file per labeled sample and the manifest, by the model of slot 1. A sample that cannot be prepared is
 * reported, and the others go on; what would stop them as well ends the whole: a full disk, a model that is not there.
 * @throws RequestError where nothing is labeled or every sample failed; the signal's reason; what the engine throws
 */
export async function prepareDataSet(
  engine: MusicEngine,
  root: PermittedRoot,
  { dataSet, outputDirectory, skipExisting }: PreparationRequest,
  { signal, onProgress }: PreparationCall,
): Promise<Preparation> {
  const prompts = trainingPrompts(dataSet);
  if (prompts.size === 0) throw new RequestError("No labeled samples: describe them with a caption first");
  const result: Preparation = { files: [], failures: [] };
  for (const sample of dataSet.samples.filter(({ labeled }) => labeled)) {
    signal.throwIfAborted();
    const done = result.files.length + result.failures.length;
    onProgress?.({ done, total: prompts.size, filename: sample.filename });
    const path = join(outputDirectory, `${sample.id}.pt`);
    try {
      if (!(skipExisting && (await isFile(path)))) {
        await prepareSample(engine, root, { sample, prompt: prompts.get(sample.id) as string, path, signal });
      }
      result.files.push(path);
    } catch (error) {
      signal.throwIfAborted();
      result.failures.push(failureOf(error, sample.filename));
    }
  }
  const [firstFailure] = result.failures;
  if (result.files.length === 0 && firstFailure !== undefined) {
    throw new RequestError(`No sample could be prepared; ${firstFailure.filename}: ${firstFailure.reason}`);
  }
  await writeJson(join(outputDirectory, MANIFEST_NAME), {
    metadata: metadataFields(dataSet),
    samples: result.files.map((path) => basename(path)),
    num_samples: result.files.length,
  });
  return result;
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

interface SampleJob {
  sample: DataSetSample;
  prompt: string;
  path: string;
  signal: AbortSignal;
}

async function prepareSample(
  engine: MusicEngine,
  root: PermittedRoot,
  { sample, prompt, path, signal }: SampleJob,
): Promise<void> {
  const audioPath = await root.resolve(sample.audioPath);
  const audio = await decodeAudio({
    path: audioPath,
    name: sample.filename,
    maxSeconds: MAX_SECONDS,
    beyondMaximum: "cut",
    signal,
  });
  const durationSeconds = Math.floor(audio.length / CHANNELS / SAMPLE_RATE);
  const lyrics = sample.isInstrumental ? INSTRUMENTAL : sample.lyrics || INSTRUMENTAL;
  const { bpm, keyScale, timeSignature, language } = sample;
  await engine.prepareSample(
    {
      caption: prompt,
      lyrics,
      language,
      metadata: { bpm, keyScale, timeSignature, durationSeconds },
      audio,
      notes: {
        audio_path: sample.audioPath,
        filename: sample.filename,
        caption: prompt,
        lyrics,
        duration: durationSeconds,
        bpm,
        keyscale: keyScale,
        timesignature: timeSignature,
        language,
        is_instrumental: sample.isInstrumental,
        custom_tag: sample.customTag,
        preprocess_mode: "native",
      },
    },
    path,
    { signal },
  );
}
