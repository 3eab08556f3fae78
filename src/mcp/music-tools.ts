/** MCP tools of the music service, built from its OpenAPI document: make, follow, fetch and list songs. */
import { writeFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { OpenApiDocument, OpenApiOperation } from "../http/openapi.js";
import { queryOf, type ServiceClient } from "./service-client.js";
import {
  bodySchema,
  errorResult,
  objectSchema,
  querySchema,
  READ_ONLY,
  type Tool,
  textResult,
} from "./tool.js";

const POLL_MS = 500;
const DEFAULT_WAIT_SECONDS = 45;
const MAX_WAIT_SECONDS = 3600;
const TASK_ID = { type: "string", description: "task_id returned by make_song." };

interface TaskRow {
  readonly state: string;
  readonly progress: number;
  readonly progress_text: string;
  readonly songs?: readonly { readonly file: string }[];
}

export function musicTools({ paths }: OpenApiDocument, client: ServiceClient, savesFiles: boolean): Tool[] {
  const make = paths["/release_task"]?.post;
  const list = paths["/v1/tasks"]?.get;
  if (!make || !list) return [];
  return [makeTool(make, client), followTool(client), fetchTool(client, savesFiles), listTool(list, client)];
}

function makeTool(operation: OpenApiOperation, client: ServiceClient): Tool {
  return {
    definition: {
      name: "make_song",
      description: "Queues a song and returns its task_id; follow_song waits for it.",
      inputSchema: bodySchema(operation),
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
    call: async (args, { signal }) => textResult(await client.post("/release_task", args, signal)),
  };
}

function followTool(client: ServiceClient): Tool {
  return {
    definition: {
      name: "follow_song",
      description:
        "Waits for a song until it is finished or the time is up. Returns state, progress and files.",
      inputSchema: objectSchema(
        {
          task_id: TASK_ID,
          wait_seconds: {
            type: "number",
            minimum: 0,
            maximum: MAX_WAIT_SECONDS,
            default: DEFAULT_WAIT_SECONDS,
          },
        },
        ["task_id"],
      ),
      annotations: READ_ONLY,
    },
    call: async ({ task_id: id, wait_seconds: seconds = DEFAULT_WAIT_SECONDS }, { signal, report }) => {
      const deadlineMs = performance.now() + Math.min(Number(seconds) || 0, MAX_WAIT_SECONDS) * 1000;
      for (;;) {
        const answer = await client.get(taskPath(id), signal);
        if (answer.status !== 200) return textResult(answer);
        const { state, progress, progress_text: text } = dataOf<TaskRow>(answer.bytes);
        if (!["queued", "running"].includes(state) || performance.now() >= deadlineMs)
          return textResult(answer);
        await report(progress, text);
        await delay(POLL_MS, undefined, { signal });
      }
    },
  };
}

function fetchTool(client: ServiceClient, savesFiles: boolean): Tool {
  const path = {
    type: "string",
    description: "Absolute path of a new file for the audio; unset: the audio is returned.",
  };
  return {
    definition: {
      name: "fetch_song",
      description: "Returns the audio of a finished song.",
      inputSchema: objectSchema(
        {
          task_id: TASK_ID,
          index: { type: "integer", default: 0, description: "Index of the song in the task." },
          format: { type: "string", description: "Converts the audio, for example mp3 or flac." },
          ...(savesFiles && { path }),
        },
        ["task_id"],
      ),
      annotations: savesFiles ? { readOnlyHint: false, destructiveHint: false } : READ_ONLY,
    },
    call: async ({ task_id: id, index = 0, format, path: target }, { signal }) => {
      const answer = await client.get(taskPath(id), signal);
      if (answer.status !== 200) return textResult(answer);
      const { songs = [], state } = dataOf<TaskRow>(answer.bytes);
      const song = songs[Number(index)];
      if (!song)
        return errorResult(`Task ${id} is ${state} and has ${songs.length} songs: no index ${index}`);
      const file = song.file + (format === undefined ? "" : queryOf({ format }).replace("?", "&"));
      const audio = await client.get(file, signal);
      if (audio.status !== 200) return textResult(audio);
      if (savesFiles && target !== undefined) return saveSong(String(target), audio.bytes);
      const data = audio.bytes.toString("base64");
      return { content: [{ type: "audio", data, mimeType: audio.mediaType }] };
    },
  };
}

async function saveSong(path: string, bytes: Buffer): Promise<CallToolResult> {
  if (!isAbsolute(path)) return errorResult(`path must be absolute, not ${JSON.stringify(path)}`);
  try {
    await writeFile(path, bytes, { flag: "wx" });
  } catch (error) {
    return errorResult(`${path} could not be written: ${(error as Error).message}`);
  }
  return { content: [{ type: "text", text: `${bytes.length} bytes written to ${path}` }] };
}

function listTool(operation: OpenApiOperation, client: ServiceClient): Tool {
  return {
    definition: {
      name: "list_songs",
      description: operation.summary,
      inputSchema: objectSchema(querySchema(operation)),
      annotations: READ_ONLY,
    },
    call: async (args, { signal }) => textResult(await client.get(`/v1/tasks${queryOf(args)}`, signal)),
  };
}

function taskPath(id: unknown): string {
  return `/v1/tasks/${encodeURIComponent(String(id))}`;
}

function dataOf<T>(bytes: Buffer): T {
  return (JSON.parse(bytes.toString()) as { data: T }).data;
}
