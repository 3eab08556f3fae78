/** Writes nano's tokenizer: `node --import tsx scripts/nano/make-tokenizer.ts --out DIR --audio-codes N`. */
import { Command } from "commander";
import { learnMerges } from "./tokenizer/byte-pairs.js";
import { tokenizerCorpus } from "./tokenizer/corpus.js";
import { mergeCount, writeTokenizer } from "./tokenizer/files.js";

const options = new Command()
  .requiredOption("--out <directory>", "where tokenizer.json goes")
  .requiredOption("--audio-codes <count>", "0 for the text encoder", Number)
  .parse()
  .opts<{ out: string; audioCodes: number }>();

writeTokenizer(options.out, learnMerges(tokenizerCorpus(), mergeCount), options.audioCodes);
