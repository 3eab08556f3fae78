/** Creates a data set from a folder of audio. */
import { readdir } from "node:fs/promises";
import { basename, extname, join, relative } from "node:path";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import { UnusableFileError } from "../../system/regular-file.js";
import { DecodeError, measureAudio } from "../audio/decode.js";
import { RequestError } from "../errors.js";
import type { ScanRequest } from "../request/data-set-bodies.js";
import { noteOnRelativePath, type PermittedRoot, UnsafePathError } from "../storage/permitted-root.js";
import { type DataSet, type DataSetSample, sampleId, withUniqueIds } from "./data-set.js";
import { type Description, describeAudio, readTables, readText } from "./sidecar-files.js";

export const AUDIO_EXTENSIONS: readonly string[] = [".flac", ".m4a", ".mp3", ".ogg", ".opus", ".wav"];
/** Maximum measured length; a longer file counts as this long. */
const LONGEST_SECONDS = 3600;
/** Number of files measured at once. */
const CONCURRENCY = 4;

export interface FolderScan {
  dataSet: DataSet;
  /** Warnings, one line per unusable file. */
  warnings: string[];
}

/**
 * Finds every audio file below the directory, sorted by path, with its descriptions. Links that lead out of the root
 * and files without audio are skipped with a warning.
 * @throws RequestError if it is not a directory, is outside the root, or contains no audio
 */
export async function scanFolder(
  request: ScanRequest,
  root: PermittedRoot,
  signal?: AbortSignal,
): Promise<FolderScan> {
  const directory = await root.resolve(request.directory);
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  const read = (path: string) => readInside(path, root, warn);
  const paths = await findAudio(directory, request.directory);
  const tables = await readTables(directory, read, warn);
  /** Makes a sample of an audio file; null, with a warning, if the file is unusable. */
  const scan = async (path: string): Promise<DataSetSample | null> => {
    const name = relative(directory, path);
    try {
      await root.resolve(path);
      const limits = { maxSeconds: LONGEST_SECONDS, beyondMaximum: "cut" } as const;
      const { seconds } = await measureAudio({ path, name, ...limits, signal });
      return sampleOf(path, name, seconds, await describeAudio(path, tables, read, warn), request);
    } catch (error) {
      if (!(error instanceof DecodeError && error.isInputFault) && !(error instanceof UnsafePathError))
        throw error;
      warn(error.message);
      return null;
    }
  };
  const samples: DataSetSample[] = [];
  for (let start = 0; start < paths.length; start += CONCURRENCY) {
    const batch = paths.slice(start, start + CONCURRENCY);
    const found = await Promise.all(batch.map(scan));
    samples.push(...found.filter((sample) => sample !== null));
  }
  if (samples.length === 0) throw new RequestError(`No usable audio in ${request.directory}: ${warnings[0]}`);
  const { name, customTag, tagPosition, allInstrumental } = request;
  const createdAt = new Date().toISOString();
  const about = { name, customTag, tagPosition, createdAt, allInstrumental, genreRatio: 0 };
  return { dataSet: { ...about, samples: withUniqueIds(samples) }, warnings };
}

async function findAudio(directory: string, shown: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new RequestError(directoryFault(error, shown), { cause: error });
    },
  );
  const paths = entries
    .filter((entry) => AUDIO_EXTENSIONS.includes(extname(entry.name).toLowerCase()) && !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  if (paths.length === 0) {
    throw new RequestError(`No audio files found in ${shown}; supported: ${AUDIO_EXTENSIONS.join(", ")}`);
  }
  return paths;
}

function directoryFault(error: NodeJS.ErrnoException, shown: string): string {
  if (error.code === "ENOENT") return `Directory not found: ${shown}${noteOnRelativePath(shown)}`;
  if (error.code === "ENOTDIR") return `Not a directory: ${shown}`;
  return `could not read ${shown}: ${error.message}`;
}

function sampleOf(
  path: string,
  name: string,
  seconds: number,
  { caption = "", lyrics = "", bpm, keyScale = "", timeSignature = "", language = "unknown" }: Description,
  { allInstrumental, customTag }: ScanRequest,
): DataSetSample {
  return {
    id: sampleId(name),
    audioPath: path,
    filename: basename(path),
    caption,
    genre: "",
    lyrics: lyrics || INSTRUMENTAL_LYRICS,
    rawLyrics: lyrics,
    formattedLyrics: "",
    bpm: bpm ?? null,
    keyScale,
    timeSignature,
    durationSeconds: Math.floor(seconds),
    language,
    isInstrumental: lyrics === "" && allInstrumental,
    customTag,
    labeled: caption !== "",
    promptOverride: null,
  };
}

async function readInside(
  path: string,
  root: PermittedRoot,
  warn: (message: string) => void,
): Promise<string | null> {
  try {
    return await readText(await root.resolve(path));
  } catch (error) {
    if (!(error instanceof UnsafePathError || error instanceof UnusableFileError)) throw error;
    warn(error.message);
    return null;
  }
}
