/** The tokenizer that a data set's token ids are of, kept beside them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { learnMerges } from "../tokenizer/byte-pairs.js";
import { tokenizerCorpus } from "../tokenizer/corpus.js";
import { mergeCount, writeTokenizer } from "../tokenizer/files.js";

/** Learns it where the data set has none; returns its directory. */
export function ensureTokenizer(dataDirectory: string): string {
  const directory = join(dataDirectory, "tokenizer");
  if (!existsSync(join(directory, "tokenizer_config.json"))) {
    writeTokenizer(directory, learnMerges(tokenizerCorpus(), mergeCount), 0);
  }
  return directory;
}
