/** Finds the recordings of a data set that was made on another machine, perhaps on Windows. */
import { relative, resolve, sep } from "node:path";
import { isWithin, type PermittedRoot } from "../storage/permitted-root.js";
import type { DataSet, DataSetSample } from "./data-set.js";
import { FolderLists } from "./file-names.js";

/**
 * Corrects the paths of recordings that are elsewhere: below `folder`, which contains the data set file, by the longest
 * end of the path that exists there. Accents and letter case may differ. A missing recording keeps its path.
 */
export async function findRecordings(
  dataSet: DataSet,
  folder: string,
  root: PermittedRoot,
): Promise<{ dataSet: DataSet; warnings: string[] }> {
  const lists = new FolderLists();
  const rootFolder = await root.resolve(".");
  /** Path of the recording if it exists inside the root. */
  const find = async (from: string, parts: readonly string[]) => {
    const path = await lists.find(from, parts);
    return path !== null && (await root.resolve(path).catch(() => null)) !== null ? path : null;
  };
  const locate = async (audioPath: string) => {
    for (const path of [audioPath, resolve(audioPath.replaceAll("\\", "/"))].filter((each) =>
      isWithin(rootFolder, each),
    )) {
      const found = await find(rootFolder, relative(rootFolder, path).split(sep));
      if (found !== null) return found;
    }
    const parts = audioPath.split(/[\\/]+/).filter(Boolean);
    for (let begin = 0; begin < parts.length; begin++) {
      const found = await find(folder, parts.slice(begin));
      if (found !== null) return found;
    }
    return null;
  };
  const warnings: string[] = [];
  const samples: DataSetSample[] = [];
  for (const sample of dataSet.samples) {
    const audioPath = await locate(sample.audio_path);
    samples.push(audioPath === null ? sample : { ...sample, audio_path: audioPath });
    if (audioPath === null) warnings.push(missing(sample, folder));
  }
  return { dataSet: { ...dataSet, samples }, warnings };
}

function missing({ audio_path: audioPath, filename }: DataSetSample, folder: string): string {
  const inFolder = `${folder}${sep}`;
  const written = audioPath.startsWith(inFolder) ? audioPath.slice(inFolder.length) : audioPath;
  return `${written} was not found; copy ${filename} into the folder of the data set`;
}
