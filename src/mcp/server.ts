/** MCP server whose tools come from the OpenAPI documents of running services. */
import { createRequire } from "node:module";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { OpenApiDocument } from "../http/openapi.js";
import { cityTools } from "./city-tools.js";
import { musicTools } from "./music-tools.js";
import type { ServiceClient } from "./service-client.js";
import { errorResult, type Tool } from "./tool.js";

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

const INSTRUCTIONS =
  "Tools named city_* read and change a simulated city. While it is paused, time passes only in city_advance. " +
  "Try commands with city_plan first. make_song, follow_song and fetch_song make music.";

export interface Services {
  readonly city?: ServiceClient;
  readonly music?: ServiceClient;
  /** Whether the client runs on this machine, so that songs can be written to its disk. */
  readonly savesFiles?: boolean;
}

/** MCP server with the tools of all services that respond. Reads their OpenAPI documents again for every request. */
export function mcpServer(services: Services): Server {
  const server = new Server(
    { name: "carillon", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    const { tools } = await toolsOf(services);
    return { tools: tools.map(({ definition }) => definition) };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, _meta }) => {
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
    client: ServiceClient | undefined,
    name: string,
    make: (document: OpenApiDocument, client: ServiceClient) => Tool[],
  ): Promise<Tool[]> => {
    if (!client) return [];
    try {
      const { status, bytes } = await client.get("/openapi.json");
      if (status !== 200) throw new Error(`status ${status}`);
      return make(JSON.parse(bytes.toString()) as OpenApiDocument, client);
    } catch (error) {
      unreachable.push(`the ${name} at ${client.url} does not respond (${(error as Error).message})`);
      return [];
    }
  };
  const tools = await Promise.all([
    load(city, "city", cityTools),
    load(music, "music service", (document, client) => musicTools(document, client, savesFiles)),
  ]);
  return { tools: tools.flat(), unreachable };
}
