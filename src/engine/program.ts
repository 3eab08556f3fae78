/** What the language model may write in a think block, as a program of segments (reference/lm.md 4.3). */
import type { Segment } from "./addon.js";
import {
  bpmRange,
  durationSecondsRange,
  keyAccidentals,
  keyModes,
  keyNotes,
  languages,
  type ThinkFields,
  timeSignatures,
} from "./think-fields.js";
import type { Tokenizer } from "./tokenizer.js";

export interface ThinkProgram {
  /** Values that are written as they stand; the model writes the others. */
  forced: ThinkFields;
  writeCaption: boolean;
  /** Without it a forced language is left out as well. */
  writeLanguage: boolean;
  /** Free text, the lyrics, after the block; else the program ends with the last field. */
  textAfterwards: boolean;
}

const maxCaptionTokens = 512;
/** Far more than any value but a caption takes. */
const maxValueTokens = 24;

/** Patterns of the values, each with its leading space and its line break. */
const valuePatterns: Record<keyof ThinkFields, string> = {
  bpm: ` ${oneOf(integers(bpmRange))}\n`,
  // A line of text, then any number of continuation lines, as YAML folds it. A line that may go on ends the
  // caption where the model's own first choice is no continuation. Backticks begin code fences: never.
  caption: " [^` ][^`]*\n(  [^`]*\n)*",
  duration: ` ${oneOf(integers(durationSecondsRange))}\n`,
  keyscale: ` ${oneOf(keyNotes)}${oneOf(keyAccidentals)}? ${oneOf(keyModes)}\n`,
  language: ` ${oneOf(languages)}\n`,
  timesignature: ` ${oneOf(timeSignatures)}\n`,
};

/** The fields in their order; the model was trained on sorted keys. */
const fieldOrder = ["bpm", "caption", "duration", "keyscale", "language", "timesignature"] as const;

export async function thinkProgram(tokenizer: Tokenizer, program: ThinkProgram): Promise<Segment[]> {
  const skipped: Partial<Record<keyof ThinkFields, boolean>> = {
    caption: !program.writeCaption,
    language: !program.writeLanguage,
  };
  const segments: Segment[] = [tokens(await tokenizer.encode([{ control: "<think>" }, { text: "\n" }]))];
  for (const field of fieldOrder.filter((name) => !skipped[name])) {
    segments.push(tokens(await tokenizer.encodeText(`${field}:`)));
    const value = program.forced[field];
    segments.push(
      value === undefined
        ? {
            kind: "pattern",
            pattern: valuePatterns[field],
            // The language is a fact to recognise, not a choice to vary.
            choose: field === "language" ? "greedy" : "sample",
            maxTokens: field === "caption" ? maxCaptionTokens : maxValueTokens,
          }
        : tokens(await tokenizer.encodeText(` ${value}\n`)),
    );
  }
  if (program.textAfterwards) {
    segments.push(tokens(await tokenizer.encode([{ control: "</think>" }, { text: "\n\n" }])), {
      kind: "text",
    });
  }
  return joinTokens(segments);
}

function tokens(ids: Int32Array): Segment {
  return { kind: "tokens", ids };
}

/** Neighbouring forced tokens need one forward pass, not one each. */
function joinTokens(segments: Segment[]): Segment[] {
  const joined: Segment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    if (segment.kind === "tokens" && last?.kind === "tokens") {
      joined[joined.length - 1] = tokens(Int32Array.from([...last.ids, ...segment.ids]));
    } else {
      joined.push(segment);
    }
  }
  return joined;
}

function oneOf(literals: readonly (string | number)[]): string {
  return `(${literals.join("|")})`;
}

function integers({ min, max }: { min: number; max: number }): number[] {
  return Array.from({ length: max - min + 1 }, (_, index) => min + index);
}
