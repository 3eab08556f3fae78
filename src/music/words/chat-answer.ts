/** A finished task as clients of chat models read it: one answer, or a stream of its parts. */
import { readFile } from "node:fs/promises";
import { contentTypeOf } from "../audio/encode.js";
import type { SongResult } from "../queue/store.js";

/** Songs as data URLs. */
type Audio = { type: "audio_url"; audio_url: { url: string } }[];

export interface ChatMessage {
  content: string;
  audio: Audio;
}

export interface ChatHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  /** As the client named it. */
  model: string;
}

export function chatHead(taskId: string, model: string): ChatHead {
  const id = `chatcmpl-${taskId.replaceAll("-", "").slice(0, 16)}`;
  return { id, created: Math.floor(Date.now() / 1000), model };
}

/** @param fileOf the path of a song's file */
export async function chatMessage(
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

export function chatCompletion(head: ChatHead, message: ChatMessage, warnings: readonly string[]) {
  return {
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    warnings,
  };
}

/** One event of a stream. */
export function chatChunk(
  head: ChatHead,
  delta: Partial<ChatMessage & { role: "assistant" }>,
  finishReason: "stop" | "error" | null = null,
): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices })}\n\n`;
}

export const CHAT_STREAM_END = "data: [DONE]\n\n";
