/** Body of POST /v1/chat/completions, converted to fields of POST /release_task. */
import type { RangePolicy } from "../../config.js";
import { describe, type Fields, flag, isObject, namesOf } from "../../parameters.js";
import type { UploadKind } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { withoutTimes } from "../words/lrc.js";
import { FieldSources, parseField } from "./fields.js";
import { generationSchema } from "./schema.js";

export interface Recording {
  kind: UploadKind;
  bytes: Buffer;
  /** Format as sent by the client, such as "mp3". */
  format: string;
}

export interface ChatRequest {
  /** Fields of POST /release_task. */
  fields: Fields;
  /** Values of fields that the client did not send. */
  defaults: Fields;
  recordings: Recording[];
  isStream: boolean;
  /** Whether the client asked for several choices (`n`). Each song is then a choice of its own. */
  hasChoices: boolean;
  /**
   * Whether the client asked for audio as OpenAI's clients do, with `modalities` or `audio`. The audio of a choice is
   * then one song in base64; otherwise it is a list of data URLs, as OpenRouter's clients read it.
   */
  isOpenAi: boolean;
  /** Whether the songs are sent as raw samples. */
  isPcm16: boolean;
}

/** Fields of a chat completion request that are not parameters of songs. */
const CONVERSATION_FIELDS: ReadonlySet<string> = new Set([
  ...["messages", "stream", "stream_options", "modalities", "audio", "audio_config", "max_tokens", "stop"],
  ...["user", "store"],
  ...["max_completion_tokens", "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"],
]);

/** @throws RequestError naming the field at fault */
export function parseChatRequest(body: Fields, policy: RangePolicy): ChatRequest {
  const { text, audio } = lastUserMessage(body.messages);
  const { format: ownFormat, instrumental, ...metadata } = objectIn(body, "audio_config");
  const { format: openAiFormat } = objectIn(body, "audio");
  const isPcm16 = openAiFormat === "pcm16";
  // No file of ours holds raw samples: the song is a wav file, and converted for the response.
  const format = isPcm16 ? "wav" : (ownFormat ?? openAiFormat);
  const isSample = parseField(generationSchema.shape.sampleMode, new FieldSources(body), policy, []);
  if (!isSample && text === "" && audio.length === 0) {
    throw new RequestError("messages must contain a user message with text or audio");
  }
  const taskType = parseField(generationSchema.shape.taskType, new FieldSources(body), policy, []);
  const parameters = Object.entries(body).filter(([name]) => !CONVERSATION_FIELDS.has(name));
  const fields = {
    ...Object.fromEntries(parameters),
    ...(isSample ? { sample_query: text } : wordsOf(text, body.lyrics, isTrue(instrumental))),
    param_obj: {
      ...metadata,
      audio_format: format,
    },
  };
  const hasSeed = new FieldSources(fields).find(namesOf(generationSchema.shape.seed)) !== undefined;
  return {
    fields,
    defaults: {
      batch_size: 1,
      lm_cfg_scale: 2,
      use_random_seed: !hasSeed,
      // Chat programs send these with every request, so no warning says that they had no effect.
      lm_temperature: body.temperature,
      lm_top_p: body.top_p,
      lm_top_k: body.top_k,
    },
    recordings: audio.map((recording, index) => ({
      ...recording,
      kind: taskType === "text2music" || index > 0 ? "referenceAudio" : "sourceAudio",
    })),
    isStream: isTrue(body.stream),
    hasChoices: Number(body.n) > 1,
    isOpenAi: isObject(body.audio) || (Array.isArray(body.modalities) && body.modalities.includes("audio")),
    isPcm16,
  };
}

function objectIn(body: Fields, name: string): Fields {
  const value = body[name] ?? {};
  if (isObject(value)) return value;
  throw new RequestError(`${name} must be an object, got ${describe(value)}`);
}

function isTrue(value: unknown): boolean {
  return flag.safeParse(value).data === true;
}

interface Message {
  text: string;
  audio: Omit<Recording, "kind">[];
}

function lastUserMessage(messages: unknown): Message {
  if (!Array.isArray(messages)) {
    throw new RequestError(`messages must be a list of messages, got ${describe(messages ?? null)}`);
  }
  const message: unknown = messages.findLast((candidate) => isObject(candidate) && candidate.role === "user");
  const content = isObject(message) ? message.content : undefined;
  if (typeof content === "string") return { text: content.trim(), audio: [] };
  if (!Array.isArray(content)) throw new RequestError("messages must contain a user message");
  const parts = content.filter(isObject);
  const texts = parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? text : []));
  const audio = parts.flatMap(({ type, input_audio }) => (type === "input_audio" ? input_audio : []));
  // Use at most two recordings: a source and a timbre reference.
  return { text: texts.join("\n").trim(), audio: audio.slice(0, 2).map(recordingOf) };
}

function recordingOf(audio: unknown): Omit<Recording, "kind"> {
  const { data, format } = isObject(audio) ? audio : {};
  const encoded = typeof data === "string" ? data.slice(data.indexOf(",") + 1) : "";
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.length === 0) throw new RequestError("input_audio.data must be audio in base64");
  return { bytes, format: typeof format === "string" ? format : "mp3" };
}

/**
 * Splits a message into prompt and lyrics by `<prompt>` and `<lyrics>` tags. Without tags and without a `lyrics`
 * field, text that looks like lyrics counts as lyrics.
 */
function wordsOf(text: string, given: unknown, isInstrumental: boolean): { prompt: string; lyrics: string } {
  const prompt = tagged(text, "prompt");
  const lyrics = tagged(text, "lyrics");
  const rest = without(without(text, "prompt"), "lyrics").trim();
  const silence = isInstrumental ? "[inst]" : "";
  if (typeof given === "string" && given.trim() !== "") return { prompt: prompt ?? rest, lyrics: given };
  if (prompt === null && lyrics === null && looksLikeLyrics(text)) return { prompt: "", lyrics: text };
  return { prompt: [prompt, rest].filter(Boolean).join("\n"), lyrics: lyrics || silence };
}

function tagged(text: string, tag: "prompt" | "lyrics"): string | null {
  const lower = text.toLowerCase();
  const start = lower.indexOf(`<${tag}>`);
  const end = lower.indexOf(`</${tag}>`, start);
  return start < 0 || end < 0 ? null : text.slice(start + tag.length + 2, end).trim();
}

/** Removes `<tag>…</tag>` from the text, in linear time (a regular expression would not be linear). */
function without(text: string, tag: "prompt" | "lyrics"): string {
  const pieces = text.split(new RegExp(`</${tag}>`, "i"));
  const last = pieces.pop() ?? "";
  const outside = pieces.map((piece) => {
    const start = piece.toLowerCase().indexOf(`<${tag}>`);
    return start < 0 ? `${piece}</${tag}>` : piece.slice(0, start);
  });
  return outside.join("") + last;
}

const SECTION = /\[(verse|chorus|bridge|intro|outro|hook|pre-chorus|refrain|inst)/i;

/** Whether the text has a section tag, times of an LRC file, or at least four lines that are short on average. */
function looksLikeLyrics(text: string): boolean {
  if (SECTION.test(text) || withoutTimes(text) !== text) return true;
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  return lines.length >= 4 && lines.join("").length / lines.length < 60;
}
