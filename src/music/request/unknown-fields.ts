/** Warns about fields that are no parameters, and suggests the parameter that was probably meant. */
import { distance } from "fastest-levenshtein";
import { describe, type Fields, namesOf } from "../../parameters.js";
import { UPLOAD_FIELDS } from "../audio/uploads.js";
import { NESTED_OBJECT_NAMES } from "./fields.js";
import { generationSchema } from "./schema.js";

/** Maximum number of unknown field names in a warning. The warning then gives the number of the other fields. */
const MAX_SHOWN = 8;
/** Maximum number of unknown field names that are compared with the known names, because comparing is slow. */
const MAX_COMPARED = 100;
/** Maximum edit distance at which a name counts as a typo. */
const MAX_TYPOS = 2;

const PARAMETERS = Object.values(generationSchema.shape).map((type) => namesOf(type));
const PARAMETER_NAMES: readonly string[] = PARAMETERS.flat();
const OTHER_NAMES = [
  "ai_token",
  ...Object.values(NESTED_OBJECT_NAMES).flat(),
  ...Object.values(UPLOAD_FIELDS).flat(),
] as const;
const KNOWN_NAMES: ReadonlySet<string> = new Set([...PARAMETER_NAMES, ...OTHER_NAMES]);

/** Names of our parameters in other programs, such as ACE-Step 1, acestep.cpp and ComfyUI. */
const NAMES_OF_OTHERS: Readonly<Record<string, string>> = {
  loras: "adapter adapter_scale lora lora_path lora_scale lora_name_or_path lora_weight",
  guidance_scale: "cfg cfg_scale audio_guidance_scale",
  cfg_interval_start: "guidance_interval",
  lm_negative_prompt: "negative_prompt",
  timesteps: "custom_timesteps sigmas",
  infer_method: "sampler sampler_mode sampler_name scheduler_type solver",
  batch_size: "lm_batch_size synth_batch_size num_songs num_samples",
  seed: "manual_seeds",
  audio_duration: "length seconds",
  bpm: "tempo",
  prompt: "style tags genre",
  instrumental: "make_instrumental",
  audio_format: "output_format response_format",
  track_name: "track stem",
  repainting_start: "repaint_start",
  repainting_end: "repaint_end",
  src_audio_path: "audio_path input_audio_path source_audio",
  reference_audio_path: "ref_audio_input",
  lm_top_k: "top_k",
  lm_top_p: "top_p",
};

/** Parameters by the letters of their names, without case, underscores and hyphens. */
const NAMES_BY_LETTERS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(NAMES_OF_OTHERS).flatMap(([meant, names]) =>
    names.split(" ").map((name) => [lettersOf(name), meant] as const),
  ),
  ...PARAMETERS.flatMap((names) => names.map((name) => [lettersOf(name), names[0]] as const)),
]);

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

/**
 * Returns a warning that lists unknown fields, those with a suggestion first. They are not refused, because clients also
 * send fields that are meant for other server products.
 */
export function unknownFieldWarnings(fields: Fields): string[] {
  const unknown = Object.keys(fields).filter((name) => !KNOWN_NAMES.has(name));
  if (unknown.length === 0) return [];
  const compared = unknown.slice(0, MAX_COMPARED);
  const hasSuggestion = (name: string) => suggestedName(name) !== undefined;
  const ordered = [...compared.filter(hasSuggestion), ...compared.filter((name) => !hasSuggestion(name))];
  const shown = ordered.slice(0, MAX_SHOWN).map(withSuggestion).join(", ");
  const rest = unknown.length > MAX_SHOWN ? `, and ${unknown.length - MAX_SHOWN} more` : "";
  return [`unknown fields were ignored: ${shown}${rest}`];
}

function withSuggestion(name: string): string {
  const meant = suggestedName(name);
  return describe(name) + (meant === undefined ? "" : ` (did you mean ${meant}?)`);
}

/**
 * Returns the parameter that was probably meant: its name in another program, one with a similar name, or the only one
 * that ends with this name.
 */
function suggestedName(name: string): string | undefined {
  if (name.length <= MAX_TYPOS || name.length > 40) return undefined;
  const same = NAMES_BY_LETTERS.get(lettersOf(name));
  if (same !== undefined) return same;
  const typos = Math.min(MAX_TYPOS, Math.floor(name.length / 3));
  const near = PARAMETER_NAMES.find((known) => distance(name, known) <= typos);
  if (near !== undefined) return near;
  if (name.includes("_")) return undefined;
  const longer = PARAMETERS.filter((names) => names.some((known) => known.endsWith(`_${name}`)));
  return longer.length === 1 ? longer[0]?.[0] : undefined;
}
