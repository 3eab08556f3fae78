/** Creates a data set from a folder of audio. */
import { readdir } from "node:fs/promises";
import { basename, dirname, extname, join, relative } from "node:path";
import { isInstrumentalTag } from "../../engine/prompts.js";
import { isDirectory } from "../../system/directory-lock.js";
import { readTextIfPresent, UnusableFileError } from "../../system/regular-file.js";
import { DecodeError, measureAudio } from "../audio/decode.js";
import { RequestError } from "../errors.js";
import type { ScanRequest } from "../request/training-bodies.js";
import { noteOnRelativePath, type PermittedRoot, UnsafePathError } from "../storage/permitted-root.js";
import { type DataSet, type DataSetSample, sampleId, toSample, withUniqueIds } from "./data-set.js";
import { FolderLists } from "./file-names.js";
import { isTable } from "./records.js";
import { type Description, describeAudio, MAX_SIDECAR_BYTES, readTables } from "./sidecar-files.js";

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
  const folders = new FolderLists();
  const read = async (path: string) => {
    const found = await folders.find(dirname(path), [basename(path)]);
    return found === null ? null : readInside(found, root, warn);
  };
  const { audio, tables } = await findFiles(directory, request.directory, warn);
  const described = await readTables(tables, audio, read, warn);
  /** Makes a sample of an audio file; null, with a warning, if the file is unusable. */
  const scan = async (path: string): Promise<DataSetSample | null> => {
    const name = relative(directory, path);
    try {
      await root.resolve(path);
      const limits = { maxSeconds: LONGEST_SECONDS, beyondMaximum: "cut" } as const;
      const { seconds } = await measureAudio({ path, name, ...limits, signal });
      const description = await describeAudio(path, described.get(path) ?? {}, read, warn);
      return sampleOf(path, name, seconds, description, request);
    } catch (error) {
      if (!(error instanceof DecodeError || error instanceof UnsafePathError)) throw error;
      warn(error.message);
      return null;
    }
  };
  const samples: DataSetSample[] = [];
  for (let start = 0; start < audio.length; start += CONCURRENCY) {
    const batch = audio.slice(start, start + CONCURRENCY);
    const found = await Promise.all(batch.map(scan));
    samples.push(...found.filter((sample) => sample !== null));
  }
  if (samples.length === 0) throw new RequestError(`No usable audio in ${request.directory}: ${warnings[0]}`);
  const { directory: _scanned, ...settings } = request;
  const about = { ...settings, created_at: new Date().toISOString(), genre_ratio: 0 };
  return { dataSet: { ...about, samples: withUniqueIds(samples) }, warnings };
}

/** Files below the directory, sorted by path. Warns of links to folders, which are not searched. */
async function findFiles(
  directory: string,
  shown: string,
  warn: (message: string) => void,
): Promise<{ audio: string[]; tables: string[] }> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new RequestError(directoryFault(error, shown), { cause: error });
    },
  );
  const paths: string[] = [];
  for (const entry of entries.filter((each) => !each.isDirectory())) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isSymbolicLink() && (await isDirectory(path)))
      warn(`${relative(directory, path)} is a link to a folder and was not searched`);
    else paths.push(path);
  }
  paths.sort();
  const audio = paths.filter((path) => AUDIO_EXTENSIONS.includes(extname(path).toLowerCase()));
  if (audio.length === 0) {
    throw new RequestError(`No audio files found in ${shown}; supported: ${AUDIO_EXTENSIONS.join(", ")}`);
  }
  return { audio, tables: paths.filter(isTable) };
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
  description: Description,
  { all_instrumental, custom_tag }: ScanRequest,
): DataSetSample {
  const { genre = "", caption = genre, lyrics = "" } = description;
  const hasNoWords = isInstrumentalTag(lyrics) || (lyrics === "" && all_instrumental);
  return toSample({
    is_instrumental: hasNoWords,
    custom_tag,
    ...description,
    id: sampleId(name),
    audio_path: path,
    filename: basename(path),
    caption,
    raw_lyrics: isInstrumentalTag(lyrics) ? "" : lyrics,
    duration: Math.floor(seconds),
    labeled: caption !== "",
  });
}

async function readInside(
  path: string,
  root: PermittedRoot,
  warn: (message: string) => void,
): Promise<string | null> {
  try {
    return await readTextIfPresent(await root.resolve(path), MAX_SIDECAR_BYTES);
  } catch (error) {
    if (!(error instanceof UnsafePathError || error instanceof UnusableFileError)) throw error;
    warn(error.message);
    return null;
  }
}
