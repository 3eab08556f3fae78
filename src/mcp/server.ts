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
  "Tools that begin with city_ read and change a simulated city; it stands still between calls of city_advance while it is " +
  "paused. Try commands with city_plan first. make_song, follow_song and fetch_song make music.";

export interface Services {
  readonly city?: ServiceClient;
  readonly music?: ServiceClient;
  /** The client runs on this machine, so songs may be written to its disk. */
  readonly savesFiles?: boolean;
}

/** A service that does not answer has no tools until it does. */
export function mcpServer(services: Services): Server {
  const server = new Server(
    { name: "carillon", version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, async () => {
    const { tools } = await toolsOf(services);
    return { tools: tools.map(({ listed }) => listed) };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, _meta }) => {
    const { tools, silent } = await toolsOf(services);
    const tool = tools.find(({ listed }) => listed.name === params.name);
    if (!tool) return errorResult([`No tool is named "${params.name}"`, ...silent].join("; "));
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

/** @returns also why services are missing */
async function toolsOf({ city, music, savesFiles = false }: Services) {
  const silent: string[] = [];
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
      silent.push(`the ${name} at ${client.url} does not answer (${(error as Error).message})`);
      return [];
    }
  };
  const tools = await Promise.all([
    load(city, "city", cityTools),
    load(music, "music service", (document, client) => musicTools(document, client, savesFiles)),
  ]);
  return { tools: tools.flat(), silent };
}
