/** Songs for clients of chat models: a finished task as one answer, or as a stream of its parts. */
import { readFile, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import type { Response } from "express";
import { contentTypeOf } from "../audio/encode.js";
import { NO_UPLOADS, storeUpload, type Uploads, uploadPath } from "../audio/uploads.js";
import { HttpError, RequestError, speakOpenAi } from "../errors.js";
import { chatCompletion as chatCompletionSchema } from "../openapi/answers.js";
import type { SongResult } from "../queue/store.js";
import { BODY_RULES } from "../request/body.js";
import { parseChatRequest, type Recording } from "../request/chat.js";
import { callerOf, type Route, type RouteContext, section } from "./route.js";
import { accept } from "./task-endpoints.js";

/** How often a stream shows that it lives. */
const HEARTBEAT_MS = 2000;

/** Makes a song while the client waits, as long as it likes. A client that hangs up cancels the task. */
const route: Route = (context) => async (request, response) => {
  speakOpenAi(response);
  const caller = callerOf(request, response);
  const { config, service, bodies } = context;
  const { fields } = await bodies.read(request, BODY_RULES.chat);
  const chat = parseChatRequest(fields, config.rangePolicy);
  const { uploads, dispose } = await storeRecordings(context, chat.recordings);
  const accepted = await accept(context, { fields: chat.fields, uploads, dispose }, caller);
  const ended = songOf(context, accepted.task_id, caller.signal);
  const model = typeof fields.model === "string" ? fields.model : "";
  const head = chatHead(accepted.task_id, model);
  const { audioFiles } = service;
  const fileOf = (name: string) => audioFiles.local(audioFiles.pathOf(name));
  try {
    if (chat.isStream) {
      await stream(response, head, ended, fileOf);
    } else {
      const song = await ended;
      const message = await chatMessage(song, fileOf);
      response.json(chatCompletion(head, message, song.warnings));
    }
  } catch (error) {
    if (!caller.signal.aborted) throw error;
    await service.queue.cancel(accepted.task_id);
  }
};

export const CHAT_ENDPOINTS = section("Chat", {
  "POST /v1/chat/completions": {
    summary: "A song as the answer of a chat model",
    body: {
      json: {
        type: "object",
        description:
          "The last message of the user holds the words, and recordings as input_audio; all parameters of POST /release_task may stand beside it.",
        properties: {
          messages: {
            type: "array",
            items: { type: "object" },
            description: "The conversation as chat models take it.",
          },
          stream: {
            type: "boolean",
            description: "Whether the answer comes in parts, as server-sent events.",
          },
        },
        required: ["messages"],
      },
    },
    answer: {
      media: "application/json",
      schema: chatCompletionSchema,
      description: "The song; with `stream`, its parts as server-sent events",
    },
    errors: [429, 507],
    example: { messages: [{ role: "user", content: "slow bossa nova" }] },
    route,
  },
});

/** @throws HttpError 500 where the task fails */
async function songOf({ service }: RouteContext, id: string, signal: AbortSignal): Promise<SongResult> {
  const { result, error } = await service.whenEnded(id, signal);
  if (result === null) throw new HttpError(500, error ?? "The task failed");
  return result;
}

/** Once the stream has begun, a failure can only be told in it. */
async function stream(
  response: Response,
  head: ChatHead,
  ended: Promise<SongResult>,
  fileOf: (name: string) => Promise<string>,
): Promise<void> {
  response.set({ "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
  response.write(chatChunk(head, { role: "assistant", content: "Generating music" }));
  const heartbeat = setInterval(() => response.write(chatChunk(head, { content: "." })), HEARTBEAT_MS);
  try {
    const { content, audio } = await chatMessage(await ended, fileOf);
    response.write(chatChunk(head, { content: `\n\n${content}` }));
    if (audio.length > 0) response.write(chatChunk(head, { audio }));
    response.write(chatChunk(head, {}, "stop"));
  } catch (error) {
    if (response.destroyed) throw error;
    const detail = error instanceof HttpError ? error.detail : "Internal server error";
    response.write(chatChunk(head, { content: `\n\nError: ${detail}` }));
    response.write(chatChunk(head, {}, "error"));
  } finally {
    clearInterval(heartbeat);
  }
  response.end("data: [DONE]\n\n");
}

/** Writes what came in messages where uploads lie. */
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

/** Songs as data URLs. */
type Audio = { type: "audio_url"; audio_url: { url: string } }[];

interface ChatMessage {
  content: string;
  audio: Audio;
}

interface ChatHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  /** As the client named it. */
  model: string;
}

function chatHead(taskId: string, model: string): ChatHead {
  const id = `chatcmpl-${taskId.replaceAll("-", "").slice(0, 16)}`;
  return { id, created: Math.floor(Date.now() / 1000), model };
}

/** @param fileOf the path of a song's file */
async function chatMessage(
  result: SongResult,
  fileOf: (name: string) => Promise<string>,
): Promise<ChatMessage> {
  const audio = result.audioFiles.map(async ({ name }) => {
    const file = await fileOf(name);
    const url = `data:${contentTypeOf(file)};base64,${await readFile(file, "base64")}`;
    return { type: "audio_url" as const, audio_url: { url } };
  });
  return { content: describeSong(result), audio: await Promise.all(audio) };
}

function describeSong({ prompt, lyrics, metas }: SongResult): string {
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

function chatCompletion(head: ChatHead, message: ChatMessage, warnings: readonly string[]) {
  return {
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    warnings,
  };
}

/** One event of a stream. */
function chatChunk(
  head: ChatHead,
  delta: Partial<ChatMessage & { role: "assistant" }>,
  finishReason: "stop" | "error" | null = null,
): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices })}\n\n`;
}
