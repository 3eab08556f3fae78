/** MCP server whose tools come from the OpenAPI documents of running services. */
import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { OpenApiDocument } from "../http/openapi.js";
import type { ServiceClient } from "./service-client.js";
import { cityTools, errorResult, musicTools, type Tool } from "./tools.js";

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

const INSTRUCTIONS =
  "Tools named city_* read and change a simulated city. While it is paused, time passes only in city_advance. " +
  "Try commands with city_plan first. make_song, follow_song and fetch_song make music.";

export interface Service {
  readonly client: ServiceClient;
  /** @throws Error if the service does not respond */
  readonly document: () => OpenApiDocument | Promise<OpenApiDocument>;
}

export interface Services {
  readonly city?: Service;
  readonly music?: Service;
  /** Whether the client runs on this machine, so that songs can be written to its disk. */
  readonly savesFiles?: boolean;
}

/** A service over HTTP. Its document is read again for every message, because it may start later or be updated. */
export function remoteService(client: ServiceClient): Service {
  const document = async () => {
    const { status, bytes } = await client.get("/openapi.json");
    if (status !== 200) throw new Error(`status ${status}`);
    return JSON.parse(bytes.toString()) as OpenApiDocument;
  };
  return { client, document };
}

let lastTurn: Promise<unknown> = Promise.resolve();

/** Resolves in a later turn of the event loop than all calls before, so that many messages do not block other requests. */
function ownTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** MCP server with the tools of all services that respond. */
export function mcpServer(services: Services): Server {
  const server = new Server(
    { name: "carillon", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    await ownTurn();
    const { tools } = await toolsOf(services);
    return { tools: tools.map(({ definition }) => definition) };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, _meta }) => {
    await ownTurn();
    const { tools, unreachable } = await toolsOf(services);
    const tool = tools.find(({ definition }) => definition.name === params.name);
    if (!tool) return errorResult([`Unknown tool "${params.name}"`, ...unreachable].join("; "));
    const progressToken = _meta?.progressToken;
    const report = async (progress: number, message: string) => {
      if (progressToken === undefined) return;
      await sendNotification({
        method: "notifications/progress",
        params: { progressToken, progress, total: 1, message },
      });
    };
    return tool
      .call(params.arguments ?? {}, { signal, report })
      .catch((error: Error) => errorResult(error.message));
  });
  return server;
}

/** @returns the tools, and a message for each unreachable service */
async function toolsOf({ city, music, savesFiles = false }: Services) {
  const unreachable: string[] = [];
  const load = async (
    service: Service | undefined,
    name: string,
    make: (document: OpenApiDocument, client: ServiceClient) => Tool[],
  ): Promise<Tool[]> => {
    if (!service) return [];
    try {
      return make(await service.document(), service.client);
    } catch (error) {
      unreachable.push(`the ${name} at ${service.client.url} does not respond (${(error as Error).message})`);
      return [];
    }
  };
  const tools = await Promise.all([
    load(city, "city", cityTools),
    load(music, "music service", (document, client) => musicTools(document, client, savesFiles)),
  ]);
  return { tools: tools.flat(), unreachable };
}
