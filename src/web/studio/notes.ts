/** Notes and errors of the service in the user's language, by their codes. */
import { CarillonError, type Note, UnansweredError } from "../../client/index.js";
import type { Task } from "./api.js";
import { t } from "./language.js";
import { parameterName, valueInWords } from "./parameters.js";

type Words = (values: Record<string, string>) => string;

/** A fact such as "Tempo 75 BPM". */
const fact = ({ name = "", value = "" }) => `${parameterName(name)} ${valueInWords(name, value)}`;
const names = ({ names: list = "" }) =>
  list
    .split(", ")
    .map((name) => parameterName(name))
    .join(", ");
const recording =
  (words: Words): Words =>
  (values) =>
    `${parameterName(values.name ?? "")}: ${words(values)}`;
const ignored: Words = (values) => t("No effect on this song: {names}", { names: names(values) });

/** Folders of absolute paths. */
const FOLDERS = /(?<!\S)\/(?:[^/:\n]+\/)*/g;

/** Sentences that say what the service did. A code without one shows the sentence of the service. */
const WORDS: Partial<Record<Note["code"], Words>> = {
  tempo_usual: (values) => t("{value} BPM, usual for “{words}”", values),
  fact_stated: (values) => t("{fact}, from “{words}” in your text", { ...values, fact: fact(values) }),
  fact_contradicted: (values) =>
    t("{fact} as you set it, although your text says “{words}”", { ...values, fact: fact(values) }),
  fact_ambiguous: (values) => t("Your text says “{words}” and “{others}”: the first was used.", values),
  tempo_out_of_range: (values) =>
    t("The tempo “{words}” was left out: {min} to {max} BPM are possible.", values),
  metre_unsupported: (values) =>
    t("The time signature “{words}” was left out: 2/4, 3/4, 4/4 and 6/8 are possible.", values),
  length_chosen: (values) => t("{seconds} s long, as you set no length", values),
  key_unknown: (values) => t("The models do not know the key {value}.", values),
  language_unknown: (values) => t("The models do not know the language {value}.", values),
  text_cut: (values) => t("Too much text: the model read about the first {percent} %.", values),
  codes_cut: (values) => t("Only the first {seconds} s: {model} makes no longer songs.", values),
  made_without_language_model: () => t("Made without the language model"),
  model_not_loaded: (values) => t("Made with {used}, as {model} is not loaded", values),
  model_not_trained: (values) => t("{model} has not learned this kind of edit.", values),
  fade_shortened: () => t("The fade was shortened to the length of the song."),
  loudness_not_reached: () => t("The song is quieter than you wanted: its peaks leave no more room."),
  stem_missing: () => t("No stem was chosen."),
  recording_undecodable: recording(() => t("not a recording that can be read")),
  recording_empty: recording(() => t("it is empty")),
  recording_too_long: recording((values) => t("longer than {seconds} s", values)),
  recording_too_short: recording((values) => t("shorter than {min} s", values)),
  recording_silent: recording(() => t("it is silent")),
  recording_absent: recording(() => t("it is no longer on the server")),
  recording_gone: () => t("The recording is no longer on the server. Add it again."),
  task_gone: () => t("This song is no longer here. It may have been deleted."),
  queue_full: () => t("The queue is full. Try again in a moment."),
  server_stopped: (values) => t("The server stopped {count} times while it made this song.", values),
  took_too_long: (values) => t("It took longer than {seconds} s and was stopped.", values),
  adapter_absent: () => t("There is no adapter at this place on the server."),
  adapter_not_found: () => t("There is no adapter at this place on the server."),
  adapter_outside: () => t("The server loads adapters only from its training folder."),
  adapter_loaded: ({ name = "" }) => t("An adapter with the name {name} is loaded already.", { name }),
  adapter_unusable: ({ reason = "" }) =>
    t("This adapter cannot be used: {reason}", { reason: reason.replace(FOLDERS, "") }),
  fields_unknown: ignored,
  parameter_ignored: ignored,
  parameters_ignored: ignored,
  value_corrected: ({ reason = "", value = "" }) =>
    t("{name}: {value} was used instead", { name: parameterName(reason.split(" ", 1)[0] as string), value }),
};

export function noteInWords({ code, values, text }: Note): string {
  return WORDS[code]?.(values) ?? text;
}

/** Why a task failed. */
export function failureOf({ error, error_note: note }: Task): string {
  return note === null ? (error ?? "") : noteInWords(note);
}

/** An error in words: those of the service by their code or as they are. */
export function errorInWords(error: unknown): string {
  if (error instanceof UnansweredError) return t("The server does not answer.");
  if (error instanceof CarillonError) {
    const { note, status, isExplained } = error;
    if (note !== undefined) return noteInWords(note);
    if (!isExplained)
      return t("The server cannot do this now ({status}). Try again in a moment.", { status });
  }
  return error instanceof Error ? error.message : String(error);
}
