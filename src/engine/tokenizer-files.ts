/** Reads Qwen3 tokenizer files: tokenizer.json, or vocab.json with merges.txt and added_tokens.json. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { MAX_TEXT_BYTES, readTextFile } from "../system/regular-file.js";
import { EngineError } from "./errors.js";

export interface AddedToken {
  id: number;
  content: string;
}

/** A tokenizer.json document and its added tokens, which are removed from the document. */
export interface TokenizerDefinition {
  /** Input of @huggingface/tokenizers. */
  document: {
    model: { vocab: Record<string, number>; [key: string]: unknown };
    added_tokens: [];
    [key: string]: unknown;
  };
  addedTokens: AddedToken[];
}

/** Pre-tokenizer of Qwen2 and Qwen3; `\s` is Unicode white space. */
const QWEN_PIECES =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

export function hasTokenizerFiles(directory: string): boolean {
  return existsSync(join(directory, "tokenizer.json")) || existsSync(join(directory, "vocab.json"));
}

/** @throws EngineError TOKENIZER if a file is missing or damaged */
export async function readTokenizerFiles(directory: string): Promise<TokenizerDefinition> {
  if (!hasTokenizerFiles(directory)) {
    throw new EngineError("TOKENIZER", `${directory} has neither tokenizer.json nor vocab.json.`);
  }
  try {
    return existsSync(join(directory, "tokenizer.json"))
      ? await readTokenizerJson(directory)
      : await readVocabularyAndMerges(directory);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EngineError("TOKENIZER", `The tokenizer in ${directory} cannot be read: ${reason}`, {
      cause: error,
    });
  }
}

async function readJson<T>(directory: string, name: string): Promise<T> {
  return JSON.parse(await readText(directory, name)) as T;
}

function readText(directory: string, name: string): Promise<string> {
  return readTextFile(join(directory, name), MAX_TEXT_BYTES);
}

async function readTokenizerJson(directory: string): Promise<TokenizerDefinition> {
  const file = await readJson<TokenizerDefinition["document"] & { added_tokens?: AddedToken[] }>(
    directory,
    "tokenizer.json",
  );
  if (file.model?.type !== "BPE") {
    throw new Error(`tokenizer.json has a ${file.model?.type} model, not BPE`);
  }
  const addedTokens: AddedToken[] = file.added_tokens ?? [];
  return { document: withoutAddedTokens(file, addedTokens), addedTokens };
}

async function readVocabularyAndMerges(directory: string): Promise<TokenizerDefinition> {
  const vocab = await readJson<Record<string, number>>(directory, "vocab.json");
  const merges = (await readText(directory, "merges.txt"))
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#version"));
  const added = existsSync(join(directory, "added_tokens.json"))
    ? await readJson<Record<string, number>>(directory, "added_tokens.json")
    : {};
  const addedTokens = Object.entries(added).map(([content, id]) => ({ content, id }));
  const document = {
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: QWEN_PIECES }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab, merges },
  };
  return { document: withoutAddedTokens(document, addedTokens), addedTokens };
}

/** Removes the added tokens from the BPE vocabulary, so that BPE never produces them. */
function withoutAddedTokens(
  document: Record<string, unknown> & { model: TokenizerDefinition["document"]["model"] },
  addedTokens: AddedToken[],
): TokenizerDefinition["document"] {
  for (const { content } of addedTokens) {
    delete document.model.vocab[content];
  }
  return { ...document, model: document.model, added_tokens: [] };
}
