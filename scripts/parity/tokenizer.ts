/** Compares the tokenizer with DIR/goldens/tokenizer.json: prompt templates and their token ids. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type PromptPart, Tokenizer } from "../../src/engine/tokenizer.js";

const CHECKPOINT = "acestep-5Hz-lm-0.6B"; // the README of the goldens names this checkpoint
const CONTROL = /(<\|[a-z0-9_]+\|>|<\/?think>)/;
const AUDIO_CODE = /^<\|audio_code_(\d+)\|>$/;

/** Returns the token ids of a template. The template spells out control tokens and audio codes as text. */
async function encodeTemplate(tokenizer: Tokenizer, text: string): Promise<number[]> {
  const ids: number[] = [];
  let parts: PromptPart[] = [];
  for (const piece of text.split(CONTROL).filter((piece) => piece !== "")) {
    const code = AUDIO_CODE.exec(piece);
    if (code) {
      ids.push(...(await tokenizer.encode(parts)), tokenizer.firstAudioCodeId + Number(code[1]));
      parts = [];
    } else {
      parts.push(CONTROL.test(piece) ? { control: piece } : { text: piece });
    }
  }
  return [...ids, ...(await tokenizer.encode(parts))];
}

const root = process.argv[2] ?? "";
const goldenFile = join(root, "goldens/tokenizer.json");
if (existsSync(goldenFile)) {
  const tokenizer = await Tokenizer.load(join(root, "checkpoints", CHECKPOINT));
  const goldens = JSON.parse(readFileSync(goldenFile, "utf8")) as { text: string; ids: number[] }[];
  const wrong: typeof goldens = [];
  for (const golden of goldens) {
    const ids = await encodeTemplate(tokenizer, golden.text);
    if (JSON.stringify(ids) !== JSON.stringify(golden.ids)) wrong.push(golden);
  }
  process.stdout.write(
    `${wrong.length === 0 ? "ok  " : "FAIL"} tokenizer  tokenizer  ${goldens.length - wrong.length} of ${goldens.length} texts equal\n`,
  );
  for (const { text } of wrong) process.stdout.write(`     differs: ${JSON.stringify(text.slice(0, 80))}\n`);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
