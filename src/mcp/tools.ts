/** MCP tools of the city and of the music service, built from their OpenAPI documents. */
import { writeFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { CallToolResult, Tool as Definition } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchema, OpenApiDocument, OpenApiOperation } from "../http/openapi.js";
import { queryOf, type ServiceClient, type ServiceResponse } from "./service-client.js";

type Arguments = Readonly<Record<string, unknown>>;

interface CallContext {
  readonly signal: AbortSignal;
  /** Reports progress from 0 to 1, if the client requested it. */
  readonly report: (progress: number, message: string) => Promise<void>;
}

export interface Tool {
  readonly definition: Definition;
  readonly call: (args: Arguments, context: CallContext) => Promise<CallToolResult>;
}

/** Annotations of a tool without side effects, which clients may call without confirmation. */
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

function toolOf(
  name: string,
  description: string,
  inputSchema: Definition["inputSchema"],
  call: Tool["call"],
  annotations: Definition["annotations"] = READ_ONLY,
): Tool {
  return { definition: { name, description, inputSchema, annotations }, call };
}

function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): Definition["inputSchema"] {
  return { type: "object", properties: properties as Record<string, object>, required: [...required] };
}

function bodySchema({ requestBody }: OpenApiOperation): Definition["inputSchema"] {
  return requestBody?.content["application/json"]?.schema as Definition["inputSchema"];
}

function querySchema({ parameters }: OpenApiOperation): Record<string, JsonSchema> {
  const inQuery = parameters.filter(({ in: place, name }) => place === "query" && name !== "quiet");
  return Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema]));
}

/** Result with the response text, marked as an error unless the status is 200. */
function textResult({ status, bytes }: ServiceResponse): CallToolResult {
  return { content: [{ type: "text", text: bytes.toString() }], isError: status !== 200 };
}

export function errorResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

const CAPTURE = "/capture";

export function cityTools({ paths }: OpenApiDocument, client: ServiceClient): Tool[] {
  const reads = operationsOf(paths, "get").filter(([path]) => path !== CAPTURE);
  const commands = operationsOf(paths, "post");
  const look = paths[CAPTURE]?.get;
  return [
    readTool(reads, client),
    planTool(commands, client),
    ...(look ? [lookTool(look, client)] : []),
    ...commands.map(([path, operation]) =>
      toolOf(
        `city_${operation.operationId.replaceAll("-", "_")}`,
        operation.summary,
        bodySchema(operation),
        async (args, { signal }) => textResult(await client.post(path, args, signal)),
        { readOnlyHint: false, openWorldHint: false },
      ),
    ),
  ];
}

type Operations = readonly (readonly [path: string, operation: OpenApiOperation])[];

function operationsOf(paths: OpenApiDocument["paths"], method: "get" | "post"): Operations {
  return Object.entries(paths).flatMap(([path, methods]) => {
    const operation = methods[method];
    return operation ? [[path, operation] as const] : [];
  });
}

function readTool(reads: Operations, client: ServiceClient): Tool {
  const query = Object.assign({}, ...reads.map(([, operation]) => querySchema(operation)));
  const list = reads.map(([path, operation]) => {
    const names = Object.keys(querySchema(operation));
    return `${path}: ${operation.summary}${names.length > 0 ? ` (${names.join(", ")})` : ""}`;
  });
  const inputs = {
    path: { type: "string", enum: reads.map(([path]) => path) },
    id: { type: "integer", description: "In place of {id} in the path." },
    query: { type: "object", properties: query },
  };
  const description = `Reads the city. Paths and their query parameters:\n${list.join("\n")}`;
  return toolOf(
    "city_read",
    description,
    objectSchema(inputs, ["path"]),
    async ({ path, id, query: given }, { signal }) => {
      const known = reads.find(([each]) => each === path)?.[0];
      if (known === undefined) return errorResult(`Unknown path ${JSON.stringify(path)}`);
      if (known.includes("{id}") && !Number.isInteger(id)) return errorResult(`${known} needs an id`);
      const target = known.replace("{id}", String(id)) + queryOf((given ?? {}) as Arguments);
      return textResult(await client.get(target, signal));
    },
  );
}

function planTool(commands: Operations, client: ServiceClient): Tool {
  const planned = commands.filter(([, operation]) => bodySchema(operation).properties?.dryRun !== undefined);
  const names = planned.map(([, { operationId }]) => operationId);
  return toolOf(
    "city_plan",
    "Dry run of a command: returns what it would build and cost, or why it would be rejected. Changes nothing. " +
      "`fields` are the fields of the command's own tool. place-building with suggest=true lists free sites.",
    objectSchema({ command: { type: "string", enum: names }, fields: { type: "object" } }, ["command"]),
    async ({ command, fields }, { signal }) => {
      const path = planned.find(([, { operationId }]) => operationId === command)?.[0];
      if (path === undefined) return errorResult(`${JSON.stringify(command)} has no dry run`);
      return textResult(await client.post(path, { ...(fields as object), dryRun: true }, signal));
    },
  );
}

function lookTool(operation: OpenApiOperation, client: ServiceClient): Tool {
  const description =
    "Renders the map around a place as an image, coloured by a mode such as Traffic or LandValue.";
  return toolOf("city_look", description, objectSchema(querySchema(operation)), async (args, { signal }) => {
    const answer = await client.get(CAPTURE + queryOf(args), signal);
    if (answer.status !== 200) return textResult(answer);
    const data = answer.bytes.toString("base64");
    return { content: [{ type: "image", data, mimeType: answer.mediaType }] };
  });
}

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
  return [
    toolOf(
      "make_song",
      "Queues a song and returns its task_id; follow_song waits for it.",
      bodySchema(make),
      async (args, { signal }) => textResult(await client.post("/release_task", args, signal)),
      { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    ),
    followTool(client),
    fetchTool(client, savesFiles),
    toolOf("list_songs", list.summary, objectSchema(querySchema(list)), async (args, { signal }) =>
      textResult(await client.get(`/v1/tasks${queryOf(args)}`, signal)),
    ),
  ];
}

function followTool(client: ServiceClient): Tool {
  const range = { minimum: 0, maximum: MAX_WAIT_SECONDS, default: DEFAULT_WAIT_SECONDS };
  return toolOf(
    "follow_song",
    "Waits for a song until it is finished or the time is up. Returns state, progress and files.",
    objectSchema({ task_id: TASK_ID, wait_seconds: { type: "number", ...range } }, ["task_id"]),
    async ({ task_id: id, wait_seconds: seconds = DEFAULT_WAIT_SECONDS }, { signal, report }) => {
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
  );
}

function fetchTool(client: ServiceClient, savesFiles: boolean): Tool {
  const path = {
    type: "string",
    description: "Absolute path of a new file for the audio; unset: the audio is returned.",
  };
  const inputs = {
    task_id: TASK_ID,
    index: { type: "integer", default: 0, description: "Index of the song in the task." },
    format: { type: "string", description: "Converts the audio, for example mp3 or flac." },
    ...(savesFiles && { path }),
  };
  return toolOf(
    "fetch_song",
    "Returns the audio of a finished song.",
    objectSchema(inputs, ["task_id"]),
    async ({ task_id: id, index = 0, format, path: target }, { signal }) => {
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
    savesFiles ? { readOnlyHint: false, destructiveHint: false } : READ_ONLY,
  );
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

function taskPath(id: unknown): string {
  return `/v1/tasks/${encodeURIComponent(String(id))}`;
}

function dataOf<T>(bytes: Buffer): T {
  return (JSON.parse(bytes.toString()) as { data: T }).data;
}
