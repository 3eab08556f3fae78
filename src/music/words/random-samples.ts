/**
 * Built-in examples for forms: short descriptions, and songs with lyrics. All texts were written for this project.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { BPM_RANGE, DURATION_SECONDS_RANGE, TIME_SIGNATURES } from "../../engine/metadata.js";
import { INSTRUMENTAL_LYRICS } from "../../engine/prompts.js";
import type { Seed } from "../../engine/types.js";
import type { songSheet } from "../openapi/answers.js";
import type { SampleType } from "../request/service-bodies.js";
import { indexFromSeed } from "../song/seeds.js";

const simpleSample = z.strictObject({
  description: z.string().min(1),
  instrumental: z.boolean(),
  vocal_language: z.string(),
});

const customSample = z.strictObject({
  caption: z.string().min(1),
  lyrics: z.string().min(1),
  bpm: z.int().min(BPM_RANGE.min).max(BPM_RANGE.max),
  duration: z.number().min(DURATION_SECONDS_RANGE.min).max(DURATION_SECONDS_RANGE.max),
  keyscale: z.string().min(1),
  language: z.string(),
  timesignature: z.enum(TIME_SIGNATURES),
});

export type SimpleSample = z.output<typeof simpleSample>;
export type CustomSample = z.output<typeof customSample>;

/** Response of POST /create_random_sample for a song, with the keys of this API and those that older clients read. */
type FormSample = Omit<z.output<typeof songSheet>, "warnings">;

export class RandomSamples {
  private constructor(
    readonly simple: readonly SimpleSample[],
    readonly custom: readonly CustomSample[],
  ) {}

  static load(): RandomSamples {
    return new RandomSamples(
      z.array(simpleSample).nonempty().parse(readJson("simple.json")),
      z.array(customSample).nonempty().parse(readJson("custom.json")),
    );
  }

  /** Returns the example song that the seed selects. */
  ofSeed(seed: Seed): FormSample {
    return fromCustom(this.custom[indexFromSeed(seed, this.custom.length)] as CustomSample);
  }

  draw(type: SampleType): FormSample {
    return type === "simple_mode" ? fromSimple(pick(this.simple)) : fromCustom(pick(this.custom));
  }
}

function fromSimple(sample: SimpleSample): FormSample & SimpleSample {
  return {
    ...sample,
    caption: sample.description,
    lyrics: sample.instrumental ? INSTRUMENTAL_LYRICS : "",
    bpm: null,
    key_scale: "",
    time_signature: "",
    duration: null,
  };
}

function fromCustom(sample: CustomSample): FormSample & CustomSample & { think: true } {
  return {
    ...sample,
    think: true,
    key_scale: sample.keyscale,
    time_signature: sample.timesignature,
    vocal_language: sample.language,
  };
}

function pick<T>(samples: readonly T[]): T {
  return samples[Math.floor(Math.random() * samples.length)] as T;
}

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`./random-samples/${name}`, import.meta.url), "utf8"));
}
