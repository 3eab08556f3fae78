/** OpenAI-compatible chat completions: makes a song and returns it as one response or as a stream. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Response } from "express";
import { eventText, setEventStreamHeaders, startHeartbeat } from "../../http/event-stream.js";
import { DataUrls } from "../audio/data-urls.js";
import { AUDIO_FORMATS } from "../audio/formats.js";
import { writePcm16 } from "../audio/pcm16.js";
import { NO_UPLOADS, storeUpload, type Uploads, uploadPath } from "../audio/uploads.js";
import { HttpError, openAiError, RequestError, setErrorBody } from "../errors.js";
import { chatCompletion as chatCompletionSchema } from "../openapi/answers.js";
import type { SongDescription, SongResult } from "../queue/store.js";
import { BODY_RULES } from "../request/body.js";
import { parseChatRequest, type Recording } from "../request/chat.js";
import { removeFiles } from "../request/multipart.js";
import { makeFolder } from "../storage/file-storage.js";
import { abortableRoute, type RouteContext, withTag } from "./route.js";
import { acceptTask } from "./task-endpoints.js";

/** Interval of keep-alive chunks. */
const HEARTBEAT_MS = 2000;

/** Queues a task and waits until the task ends. */
const route = abortableRoute(async (context, request, response, caller) => {
  setErrorBody(response, openAiError);
  const { config, service, bodies } = context;
  const { fields, client } = await bodies.read(request, BODY_RULES.chat);
  const chat = parseChatRequest(fields, config.rangePolicy);
  const { uploads, dispose } = await storeRecordings(context, chat.recordings);
  const { defaults, hasChoices, isOpenAi, isPcm16 } = chat;
  const body = { fields: chat.fields, uploads, dispose, client };
  const accepted = await acceptTask(context, body, caller, { defaults });
  const ended = songOf(context, accepted.task_id, caller.signal);
  const model = typeof fields.model === "string" ? fields.model : "";
  const head = chatHead(accepted.task_id, model);
  const messagesOf = isOpenAi ? openAiMessages(head) : hasChoices ? oneMessagePerSong : oneMessage;
  const { audioFiles } = service;
  const converted: string[] = [];
  const fileOf = async (name: string) => {
    const path = await audioFiles.localPath(audioFiles.pathOf(name), caller.signal);
    if (!isPcm16) return path;
    const raw = join(service.uploadsDirectory, `${randomUUID()}.pcm`);
    converted.push(raw);
    await makeFolder(service.uploadsDirectory);
    await writePcm16(path, raw, caller.signal);
    return raw;
  };
  try {
    if (chat.isStream) await stream(response, head, ended, fileOf, messagesOf);
    else await answer(response, head, await ended, fileOf, messagesOf);
  } finally {
    await removeFiles(converted);
  }
});

export const CHAT_ENDPOINTS = withTag("Chat", {
  "POST /v1/chat/completions": {
    summary: "Make a song through a chat completion",
    body: {
      json: {
        type: "object",
        description:
          "The last user message holds the prompt and lyrics, and recordings as input_audio. All parameters of POST /release_task are accepted.",
        properties: {
          messages: {
            type: "array",
            items: { type: "object" },
            description: "Messages in OpenAI format.",
          },
          stream: {
            type: "boolean",
            description: "Stream the response as server-sent events.",
          },
          modalities: {
            type: "array",
            items: { type: "string" },
            description: "With `audio`, the answer has `message.audio.data`, as OpenAI's clients read it.",
          },
          audio: {
            type: "object",
            properties: {
              format: {
                type: "string",
                enum: [...AUDIO_FORMATS, "pcm16"],
                description: "Audio format; pcm16: raw 16-bit mono at 24 kHz.",
              },
            },
            description: "Like `modalities` with `audio`. `voice` has no effect.",
          },
          n: {
            type: "integer",
            description:
              "Number of songs, each a choice of its own. With batch_size, one choice holds all songs.",
          },
        },
        required: ["messages"],
      },
    },
    answer: {
      media: "application/json",
      schema: chatCompletionSchema,
      description: "The song; with `stream`, chunks as server-sent events",
    },
    errors: [429, 507],
    example: { messages: [{ role: "user", content: "slow bossa nova" }] },
    route,
  },
});

/** Cancels the task if the client disconnects or the service stops: nobody gets the song. @throws HttpError 500 if the task fails */
export async function songOf(
  { service }: RouteContext,
  id: string,
  signal: AbortSignal,
): Promise<SongResult> {
  const { tasks } = service;
  const { result, error } = await tasks.whenEnded(id, signal).catch(async (reason: unknown) => {
    await tasks.cancel(id).catch(() => {});
    throw reason;
  });
  if (result === null) throw new HttpError(500, error ?? "The task failed");
  return result;
}

async function answer(
  response: Response,
  head: ChatHead,
  song: SongResult,
  fileOf: (name: string) => Promise<string>,
  messagesOf: MessagesOf,
): Promise<void> {
  const songs = await openSongs(song, fileOf);
  try {
    const text = JSON.stringify(chatCompletion(head, messagesOf(song, songs), song.warnings));
    response.type("application/json").set("Content-Length", String(songs.byteLength(text)));
    await songs.send(text, response, true);
  } finally {
    await songs.close();
  }
}

/** Streams the response. Once it has started, errors can only be sent as part of the stream. */
async function stream(
  response: Response,
  head: ChatHead,
  ended: Promise<SongResult>,
  fileOf: (name: string) => Promise<string>,
  messagesOf: MessagesOf,
): Promise<void> {
  setEventStreamHeaders(response);
  response.write(chatChunk(head, 0, { role: "assistant", content: "Generating music" }));
  const stopHeartbeat = startHeartbeat(response, chatChunk(head, 0, { content: "." }), HEARTBEAT_MS);
  try {
    const song = await ended;
    const songs = await openSongs(song, fileOf);
    stopHeartbeat();
    try {
      const chunks = messagesOf(song, songs).flatMap(({ content, audio }, index) => [
        chatChunk(head, index, {
          ...(index > 0 && { role: "assistant" as const }),
          content: `\n\n${content}`,
        }),
        ...(Array.isArray(audio) && audio.length === 0 ? [] : [chatChunk(head, index, { audio })]),
        chatChunk(head, index, {}, "stop"),
      ]);
      await songs.send(chunks.join(""), response, false);
    } finally {
      await songs.close();
    }
  } catch (error) {
    if (response.destroyed) throw error;
    const detail = error instanceof HttpError ? error.detail : "Internal server error";
    response.write(chatChunk(head, 0, { content: `\n\nError: ${detail}` }));
    response.write(chatChunk(head, 0, {}, "error"));
  } finally {
    stopHeartbeat();
  }
  response.end(eventText("[DONE]"));
}

async function storeRecordings({ service, config }: RouteContext, recordings: readonly Recording[]) {
  const paths: string[] = [];
  let uploads: Uploads = NO_UPLOADS;
  const dispose = async (kept: readonly string[] = []) => {
    for (const path of paths.filter((stored) => !kept.includes(stored))) await rm(path, { force: true });
  };
  try {
    for (const { kind, bytes, format } of recordings) {
      if (bytes.length > config.uploadMaxBytes) {
        throw new RequestError(`input_audio is larger than the limit of ${config.uploadMaxBytes} bytes`);
      }
      const path = uploadPath(service.uploadsDirectory, kind, `message.${format}`);
      paths.push(path);
      await storeUpload(Readable.from([bytes]), path);
      uploads = { ...uploads, [kind]: { path } };
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return { uploads, dispose };
}

/** Songs as data URLs, or one song as OpenAI's clients read it. */
type Audio = { type: "audio_url"; audio_url: { url: string } }[] | OpenAiAudio;

interface OpenAiAudio {
  id: string;
  /** Base64. */
  data: string;
  transcript: string;
  /** Seconds since the epoch. */
  expires_at: number;
}

interface ChatMessage {
  content: string;
  audio: Audio;
}

interface ChatHead {
  id: string;
  /** Creation time in seconds since the epoch. */
  created: number;
  /** Model name as sent by the client. */
  model: string;
}

function chatHead(taskId: string, model: string): ChatHead {
  const id = `chatcmpl-${taskId.replaceAll("-", "").slice(0, 16)}`;
  return { id, created: Math.floor(Date.now() / 1000), model };
}

/** @param fileOf returns the path of a song file by its name */
async function openSongs(
  { audioFiles }: SongResult,
  fileOf: (name: string) => Promise<string>,
): Promise<DataUrls> {
  return DataUrls.open(await Promise.all(audioFiles.map(({ name }) => fileOf(name))));
}

/** Returns the message of each choice. */
type MessagesOf = (result: SongResult, songs: DataUrls) => ChatMessage[];

const oneMessage: MessagesOf = (result, { urls }) => [
  { content: describeSong(result), audio: urls.map(audioPart) },
];

const oneMessagePerSong: MessagesOf = (result, songs) =>
  songs.urls.length === 0
    ? oneMessage(result, songs)
    : songs.urls.map((url, index) => ({
        content: describeSong(result.audioFiles[index]?.description ?? result),
        audio: [audioPart(url)],
      }));

function audioPart(url: string) {
  return { type: "audio_url" as const, audio_url: { url } };
}

/** OpenAI keeps the audio of a response for an hour. Our songs stay longer. */
const OPENAI_AUDIO_SECONDS = 3600;

function openAiMessages({ id, created }: ChatHead): MessagesOf {
  return (result, songs) => {
    if (songs.data.length === 0) return oneMessage(result, songs);
    return songs.data.map((data, index) => {
      const song = result.audioFiles[index]?.description ?? result;
      const audio = { data, transcript: song.lyrics, expires_at: created + OPENAI_AUDIO_SECONDS };
      return { content: describeSong(song), audio: { id: `audio-${id}-${index}`, ...audio } };
    });
  };
}

function describeSong({ prompt, lyrics, metas }: SongDescription): string {
  const { bpm, duration, keyscale, timesignature } = metas;
  const facts: [name: string, value: string | number | null | undefined][] = [
    ["Caption", prompt],
    ["BPM", bpm],
    ["Duration", duration && `${duration}s`],
    ["Key", keyscale],
    ["Time Signature", timesignature],
  ];
  const known = facts.flatMap(([name, value]) => (value ? `**${name}:** ${value}` : []));
  return ["## Metadata", ...known, "", "## Lyrics", lyrics].join("\n");
}

function chatCompletion(head: ChatHead, messages: readonly ChatMessage[], warnings: readonly string[]) {
  const choices = messages.map((message, index) => ({
    index,
    message: { role: "assistant", ...message },
    finish_reason: "stop",
  }));
  return {
    ...head,
    object: "chat.completion",
    choices,
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    warnings,
  };
}

function chatChunk(
  head: ChatHead,
  index: number,
  delta: Partial<ChatMessage & { role: "assistant" }>,
  finishReason: "stop" | "error" | null = null,
): string {
  const choices = [{ index, delta, finish_reason: finishReason }];
  return eventText(JSON.stringify({ ...head, object: "chat.completion.chunk", choices }));
}
