/** The body of POST /v1/chat/completions: a task of POST /release_task, told in a conversation. */
import type { RangePolicy } from "../../config.js";
import { describe, flag } from "../../parameters.js";
import type { UploadKind } from "../audio/uploads.js";
import { RequestError } from "../errors.js";
import { FieldSources, parseField } from "./fields.js";
import { type Fields, isObject } from "./json.js";
import { generationSchema } from "./schema.js";

/** A recording inside a message. */
export interface Recording {
  kind: UploadKind;
  bytes: Buffer;
  /** As the client calls it, such as "mp3". */
  format: string;
}

export interface ChatRequest {
  /** As POST /release_task takes them. */
  fields: Fields;
  recordings: Recording[];
  isStream: boolean;
}

/** What chat clients send to every model. */
const CONVERSATION_FIELDS: ReadonlySet<string> = new Set([
  ...[
    "messages",
    "stream",
    "stream_options",
    "modalities",
    "audio_config",
    "max_tokens",
    "stop",
    "n",
    "user",
  ],
  ...["max_completion_tokens", "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"],
]);

/** @throws RequestError naming the field at fault */
export function parseChatRequest(body: Fields, policy: RangePolicy): ChatRequest {
  const { text, audio } = lastUserMessage(body.messages);
  const config = isObject(body.audio_config) ? body.audio_config : {};
  const { format, instrumental, ...metadata } = config;
  const isSample = parseField(generationSchema.shape.sampleMode, new FieldSources(body), policy, []);
  if (!isSample && text === "" && audio.length === 0) {
    throw new RequestError("messages must hold a message of the user with text or audio");
  }
  const taskType = parseField(generationSchema.shape.taskType, new FieldSources(body), policy, []);
  const parameters = Object.entries(body).filter(([name]) => !CONVERSATION_FIELDS.has(name));
  return {
    fields: {
      ...Object.fromEntries(parameters),
      ...(isSample ? { sample_query: text } : wordsOf(text, body.lyrics, isTrue(instrumental))),
      batch_size: body.batch_size ?? 1,
      lm_cfg_scale: body.lm_cfg_scale ?? 2,
      use_random_seed: body.use_random_seed ?? (body.seed === undefined || body.seed === null),
      param_obj: {
        ...metadata,
        audio_format: format,
        lm_temperature: body.temperature,
        lm_top_p: body.top_p,
        lm_top_k: body.top_k,
      },
    },
    recordings: audio.map((recording, index) => ({ ...recording, kind: kindOf(taskType, index) })),
    isStream: isTrue(body.stream),
  };
}

function isTrue(value: unknown): boolean {
  return flag.safeParse(value).data === true;
}

/** Only what makes music of nothing has no source: there a recording is heard for its timbre. */
function kindOf(taskType: string, index: number): UploadKind {
  return taskType === "text2music" || index > 0 ? "referenceAudio" : "sourceAudio";
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
  if (!Array.isArray(content)) throw new RequestError("messages must hold a message of the user");
  const parts = content.filter(isObject);
  const texts = parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? text : []));
  const audio = parts.flatMap(({ type, input_audio }) => (type === "input_audio" ? input_audio : []));
  // The first is what the task works on, the second whose timbre to take.
  return { text: texts.join("\n").trim(), audio: audio.slice(0, 2).map(recordingOf) };
}

function recordingOf(audio: unknown): Omit<Recording, "kind"> {
  const { data, format } = isObject(audio) ? audio : {};
  const encoded = typeof data === "string" ? data.slice(data.indexOf(",") + 1) : "";
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.length === 0) throw new RequestError("input_audio.data must hold a recording in base64");
  return { bytes, format: typeof format === "string" ? format : "mp3" };
}

/** What the words of a message are: marked by tags, or told by their look where no `lyrics` stand beside them. */
function wordsOf(text: string, given: unknown, isInstrumental: boolean): { prompt: string; lyrics: string } {
  const prompt = tagged(text, "prompt");
  const lyrics = tagged(text, "lyrics");
  const rest = untagged(text);
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

function untagged(text: string): string {
  return without(without(text, "prompt"), "lyrics").trim();
}

/** The text without what stands between `tag` and its end; in linear time, which a pattern would not keep to. */
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

/** Sections of a song, or several short lines. */
function looksLikeLyrics(text: string): boolean {
  if (SECTION.test(text)) return true;
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  return lines.length >= 4 && lines.join("").length / lines.length < 60;
}
