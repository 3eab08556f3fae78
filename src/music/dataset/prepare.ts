/**
 * Converts labeled samples to the sample files of adapter training (native/core/training). Prompts are the same as for
 * inference, without padding. The manifest is written last and lists the files.
 */
import { mkdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { z } from "zod";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import type { MusicEngine } from "../../engine/types.js";
import type { Work } from "../background-work.js";
import { RequestError } from "../errors.js";
import { requireModel } from "../models/models.js";
import type { preparedDataSet } from "../openapi/answers.js";
import type { PreparationOptions } from "../request/training-bodies.js";
import { createOutputDirectory, type PermittedRoot } from "../storage/permitted-root.js";
import { withoutTimes } from "../words/lrc.js";
import { type DataSet, type DataSetSample, metadataFields, trainingPrompts, writeJson } from "./data-set.js";
import { MANIFEST_NAME } from "./sample-set.js";
import {
  forEachSample,
  readSampleAudio,
  type SampleFailure,
  type SampleProgress,
  withFailures,
} from "./sample-work.js";

const NOTHING_LABELED = "No labeled samples: add captions first";

export type PreparationResult = z.output<typeof preparedDataSet>;

/** @throws RequestError if a path is outside the root or no sample is labeled */
export async function preparationWork(
  engine: MusicEngine,
  root: PermittedRoot,
  dataSet: DataSet,
  { outputDir, skipExisting }: PreparationOptions,
): Promise<Work<SampleProgress, PreparationResult>> {
  const outputDirectory = await root.resolve(outputDir);
  requireModel(engine.catalog);
  const total = dataSet.samples.filter(({ labeled }) => labeled).length;
  if (total === 0) throw new RequestError(NOTHING_LABELED);
  await createOutputDirectory(outputDirectory, outputDir);
  const run = async (progress: SampleProgress, signal: AbortSignal): Promise<PreparationResult> => {
    const { files, failures } = await prepareDataSet(
      engine,
      root,
      { dataSet, outputDirectory, skipExisting },
      { signal, onProgress: ({ done }) => Object.assign(progress, { done }) },
    );
    progress.done = total;
    const done = `✅ Preprocessed ${files.length}/${dataSet.samples.length} samples to ${outputDir}`;
    return {
      message: withFailures(done, [...failures, ...unlabeledSamples(dataSet)]),
      output_dir: outputDir,
      num_tensors: files.length,
    };
  };
  return { progress: { done: 0, total }, run };
}

export interface PreparationRequest {
  dataSet: DataSet;
  /** Directory for the sample files: absolute, existing. */
  outputDirectory: string;
  skipExisting: boolean;
}

export interface PreparationCall {
  signal: AbortSignal;
  /** `done` includes failed samples; `filename` is the next sample. */
  onProgress?: (progress: { done: number; total: number; filename: string }) => void;
}

/**
 * Writes one file per labeled sample and the manifest, with the model of slot 1. A failing sample is reported and
 * skipped. A failure that would affect all samples ends the task, for example a full disk or a missing model.
 * @returns absolute paths of the files in the order of the data set, including files that already existed
 * @throws RequestError if no sample is labeled or every sample failed; the signal's reason; errors of the engine
 */
export async function prepareDataSet(
  engine: MusicEngine,
  root: PermittedRoot,
  { dataSet, outputDirectory, skipExisting }: PreparationRequest,
  { signal, onProgress }: PreparationCall,
): Promise<{ files: string[]; failures: SampleFailure[] }> {
  const prompts = trainingPrompts(dataSet);
  if (prompts.size === 0) throw new RequestError(NOTHING_LABELED);
  const files: string[] = [];
  const labeled = dataSet.samples.filter(({ labeled }) => labeled);
  const onNext = (done: number, { filename }: DataSetSample) =>
    onProgress?.({ done, total: prompts.size, filename });
  const failures = await forEachSample(labeled, "prepared", { signal, onNext }, async (sample) => {
    const path = join(outputDirectory, `${sample.id}.pt`);
    // It may have been deleted since the start.
    await mkdir(outputDirectory, { recursive: true });
    const exists = skipExisting && (await stat(path).catch(() => null))?.isFile();
    if (!exists) {
      await prepareSample(engine, root, { sample, prompt: prompts.get(sample.id) as string, path, signal });
    }
    files.push(path);
  });
  await writeJson(join(outputDirectory, MANIFEST_NAME), {
    metadata: metadataFields(dataSet),
    samples: files.map((path) => basename(path)),
    num_samples: files.length,
  });
  return { files, failures };
}

/** The samples that a preparation leaves out. */
export function unlabeledSamples({ samples }: DataSet): SampleFailure[] {
  return samples
    .filter(({ labeled }) => !labeled)
    .map(({ filename, caption }) => ({
      filename,
      reason: `${caption.trim() === "" ? "has no caption" : "is not labeled"} and is skipped`,
    }));
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
  const { audio, durationSeconds } = await readSampleAudio(root, sample, signal);
  const { audio_path, filename, bpm, keyscale, timesignature, language, is_instrumental, custom_tag } =
    sample;
  const lyrics = (is_instrumental ? "" : withoutTimes(sample.lyrics)) || INSTRUMENTAL_LYRICS;
  await engine.renderer.prepareSample(
    {
      caption: prompt,
      lyrics,
      language,
      metadata: { bpm, keyScale: keyscale, timeSignature: timesignature, durationSeconds },
      audio,
      notes: {
        audio_path,
        filename,
        caption: prompt,
        lyrics,
        duration: durationSeconds,
        bpm,
        keyscale,
        timesignature,
        language,
        is_instrumental,
        custom_tag,
        preprocess_mode: "native",
      },
    },
    path,
    { signal },
  );
}
