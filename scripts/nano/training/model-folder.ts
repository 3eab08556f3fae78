/** Writes the model's folder for training: configs and tokenizers of the checkpoint to start from, and training.json. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unconditionalCodesPrompt } from "../../../src/engine/prompts.js";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { genres } from "../genres/index.js";

const tokenizerFiles = ["tokenizer.json", "tokenizer_config.json"];

export async function writeModelFolder(directory: string, checkpoint: string): Promise<void> {
  const textEncoder = join(directory, "text_encoder");
  const languageModel = join(directory, "lm");
  for (const part of ["", "text_encoder", "lm", "vae"]) {
    mkdirSync(join(directory, part), { recursive: true });
    copyFileSync(join(checkpoint, part, "config.json"), join(directory, part, "config.json"));
  }
  for (const file of tokenizerFiles)
    copyFileSync(join(checkpoint, "text_encoder", file), join(textEncoder, file));
  const { fsq_input_levels: levels } = readJson(join(checkpoint, "config.json")) as {
    fsq_input_levels: number[];
  };
  const audioCodes = levels.reduce((product, count) => product * count, 1);
  writeLanguageTokenizer(textEncoder, languageModel, audioCodes);
  const unconditional = await (await Tokenizer.load(languageModel)).encode(unconditionalCodesPrompt(""));
  writeJson(join(directory, "training.json"), {
    genres: genres.map(({ name }) => name),
    unconditionalPrompt: [...unconditional],
  });
}

interface TokenizerDocument {
  added_tokens: { id: number; content: string }[];
  post_processor: unknown;
}

/** The text encoder's tokenizer with audio codes, and without an end token after every text. */
function writeLanguageTokenizer(textEncoder: string, directory: string, audioCodes: number): void {
  const document = readJson(join(textEncoder, "tokenizer.json")) as TokenizerDocument;
  const next = Math.max(...document.added_tokens.map(({ id }) => id)) + 1;
  const codes = Array.from({ length: audioCodes }, (_, code) => ({
    ...document.added_tokens[0],
    ...{ id: next + code, content: `<|audio_code_${code}|>`, special: false },
  }));
  writeJson(join(directory, "tokenizer.json"), {
    ...document,
    ...{ added_tokens: [...document.added_tokens, ...codes], post_processor: null },
  });
  const settings = readJson(join(textEncoder, "tokenizer_config.json")) as object;
  writeJson(join(directory, "tokenizer_config.json"), { ...settings, eos_token: "<|im_end|>" });
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 1)}\n`);
}
