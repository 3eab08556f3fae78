/**
 * What the service tells users about their songs: sentences in English, and a code with values for programs that
 * say it in their own words. Tasks store the sentences, so the notes of tasks of earlier versions have codes too.
 */
import { z } from "zod";

/** Sentences by code. The first that matches counts, so general ones come last. */
const SENTENCES = {
  tempo_usual: 'bpm was not set: {value} is usual for "{words}"',
  fact_stated: '{name} {value} was taken from the prompt\'s "{words}"',
  fact_contradicted: '{name} {value} was used as sent, although the prompt says "{words}"',
  fact_ambiguous: 'the prompt names more than one {name}, "{words}" and "{others}"; the first was used',
  tempo_out_of_range: 'the prompt\'s tempo "{words}" was ignored: it must be from {min} to {max}',
  metre_unsupported: 'the metre "{words}" is not supported, only 2/4, 3/4, 4/4 and 6/8',
  length_chosen: "audio_duration was not set: using {seconds} s, {reason}",
  key_unknown: 'key_scale {value} is unknown to the models: use a key such as "F# minor"',
  language_unknown: "vocal_language {value} is unknown to the models: use one of {languages}",
  text_cut: "the {text} are too long for the model: about the first {percent} % were used",
  codes_cut: "audio codes beyond {seconds} s were dropped: that is the longest song of {model}",
  made_without_language_model: "the song was made without the language model: {reason}",
  model_not_loaded: 'model "{model}" is not loaded; {used} was used',
  model_not_trained: "{model} was not trained for task_type {task_type}: use a base model",
  fade_shortened: "{name} of {seconds} seconds was shortened to the length of the song, {length}",
  loudness_not_reached: "loudness {value} was not reached: the song is {found} with its highest peak",
  stem_missing: "{task_type} has no stem: set track_name, or track_classes for several, to {stems}",
  recording_undecodable: "{name} contains no decodable audio",
  recording_empty: "{name} is empty",
  recording_too_long: "{name} lasts longer than {seconds} seconds",
  recording_too_short: "{name} lasts {seconds} seconds; the minimum is {min}",
  recording_silent: "{name} is silent and has no timbre; send another file or none",
  recording_absent: "{name} names a path that does not exist on the server{advice}",
  recording_gone: "the recording {path} is no longer stored: send the file again",
  task_gone: "No such task: {id}",
  queue_full: "Server busy: queue is full",
  server_stopped: "the server stopped {count} times while this task ran; the task is not tried again",
  took_too_long: "the job ran longer than {seconds} seconds, the limit of SVC_JOB_TIMEOUT_SECONDS",
  adapter_absent: "❌ Failed to load LoRA: {path}: there is no such file or folder",
  adapter_not_found: "❌ Failed to load LoRA: {path}: no adapter found",
  adapter_outside:
    "❌ Failed to load LoRA: Rejected unsafe path: {path} is outside {root} (SVC_TRAINING_ROOT)",
  adapter_loaded: '❌ Failed to load LoRA: An adapter named "{name}" is already loaded.',
  adapter_unusable: "❌ Failed to load LoRA: {reason}",
  field_counts: "{lost} was ignored: {used} counts",
  fields_unknown: "unknown fields were ignored: {names}",
  parameter_ignored: "{names} was ignored: {reason}",
  parameters_ignored: "{names} were ignored: {reason}",
  value_corrected: "{reason}; {value} was used",
} as const;

export type NoteCode = keyof typeof SENTENCES;
type ValueName<Sentence> = Sentence extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ValueName<Rest>
  : never;

/** The sentence of a note. */
export function say<Code extends NoteCode>(
  code: Code,
  values: Record<ValueName<(typeof SENTENCES)[Code]>, string | number>,
): string {
  const named: Readonly<Record<string, string | number>> = values;
  return SENTENCES[code].replace(/\{(\w+)\}/g, (_, name: string) => String(named[name]));
}

const OTHER = "other";

export const noteSchema = z
  .object({
    code: z.enum([...(Object.keys(SENTENCES) as NoteCode[]), OTHER]),
    values: z.record(z.string(), z.string()).meta({ description: "values in the text, by name" }),
    text: z.string().meta({ description: "in English" }),
  })
  .meta({ id: "Note", description: "a sentence with a code; `other` has no values" });

export type Note = z.output<typeof noteSchema>;

/** Sentences whose first value can contain the text that follows it, because it quotes a client. */
const QUOTING_FIRST: ReadonlySet<string> = new Set<NoteCode>(["value_corrected"]);

/** The texts before, between and after the values of a sentence, and the names of the values. */
const PATTERNS = Object.entries(SENTENCES).map(([code, sentence]) => ({
  code: code as NoteCode,
  texts: sentence.split(/\{\w+\}/),
  names: [...sentence.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string),
}));

/** The code and the values of a sentence. */
export function noteOf(text: string): Note {
  for (const { code, texts, names } of PATTERNS) {
    const values = valuesBetween(text, texts, QUOTING_FIRST.has(code));
    if (values === null) continue;
    return { code, values: Object.fromEntries(names.map((name, i) => [name, values[i] as string])), text };
  }
  return { code: OTHER, values: {}, text };
}

/**
 * What stands between the texts, each as short as possible; null if they do not make up the sentence. A regular
 * expression would take quadratic time, and sentences can quote a client's words.
 * @param isFirstLong whether the first of two values is as long as possible instead
 */
function valuesBetween(
  sentence: string,
  [start = "", ...texts]: readonly string[],
  isFirstLong: boolean,
): string[] | null {
  if (texts.length === 0) return sentence === start ? [] : null;
  if (!sentence.startsWith(start)) return null;
  const values: string[] = [];
  let from = start.length;
  for (const [i, text] of texts.entries()) {
    const isLast = i === texts.length - 1;
    const atEnd = sentence.length - text.length;
    const end = isLast ? atEnd : isFirstLong ? sentence.lastIndexOf(text) : sentence.indexOf(text, from + 1);
    if (end <= from || !sentence.startsWith(text, end)) return null;
    values.push(sentence.slice(from, end));
    from = end + text.length;
  }
  return values;
}
