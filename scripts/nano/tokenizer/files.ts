/** A tokenizer in the files that Hugging Face's libraries and the engine read. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { QWEN_PIECES } from "../../../src/engine/tokenizer-files.js";
import { letterOfByte } from "./byte-pairs.js";

/** The control tokens of Qwen3 that prompts use, in the order of their ids. */
const controls = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"] as const;
const specialControls = 3;

/** How many of 2048 ids the bytes and the controls leave. */
export const mergeCount = 2048 - 256 - controls.length;

/**
 * Writes tokenizer.json and tokenizer_config.json.
 * @param audioCodes codes of a language model's tokenizer; 0 for a text encoder's, which ends every text
 */
export function writeTokenizer(directory: string, merges: [string, string][], audioCodes: number): void {
  mkdirSync(directory, { recursive: true });
  const symbols = [...[...letterOfByte].sort(), ...merges.map(([left, right]) => left + right)];
  const vocab = Object.fromEntries([...new Set(symbols)].map((symbol, id) => [symbol, id]));
  const firstAdded = Object.keys(vocab).length;
  const added = [...controls, ...Array.from({ length: audioCodes }, (_, code) => `<|audio_code_${code}|>`)];
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  const isTextEncoder = audioCodes === 0;
  writeJson(join(directory, "tokenizer.json"), {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map((content, index) => ({
      ...{ id: firstAdded + index, content, single_word: false, lstrip: false, rstrip: false },
      ...{ normalized: false, special: index < specialControls },
    })),
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: QWEN_PIECES }, behavior: "Isolated", invert: false },
        byteLevel,
      ],
    },
    post_processor: isTextEncoder ? endingEveryText(firstAdded) : null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      ...{ type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null },
      ...{ end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false },
      vocab,
      merges,
    },
  });
  writeJson(join(directory, "tokenizer_config.json"), {
    tokenizer_class: "Qwen2Tokenizer",
    add_prefix_space: false,
    pad_token: "<|endoftext|>",
    eos_token: isTextEncoder ? "<|endoftext|>" : "<|im_end|>",
  });
}

function endingEveryText(endId: number) {
  const end = { SpecialToken: { id: "<|endoftext|>", type_id: 0 } };
  const sequence = (id: "A" | "B") => ({ Sequence: { id, type_id: id === "A" ? 0 : 1 } });
  return {
    type: "TemplateProcessing",
    single: [sequence("A"), end],
    pair: [sequence("A"), sequence("B"), end],
    special_tokens: { "<|endoftext|>": { id: "<|endoftext|>", ids: [endId], tokens: ["<|endoftext|>"] } },
  };
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 1)}\n`);
}
