/** `carillon mcp`: MCP over standard input and output, in front of services that run on this machine. */
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Config } from "../config.js";
import { mcpServer, remoteService } from "./server.js";
import { ServiceClient } from "./service-client.js";

/** Resolves when the client closes the input. */
export async function serveStdio({ cityPort, apiHost, apiPort, apiKey }: Config): Promise<void> {
  const isAnyAddress = ["0.0.0.0", "::"].includes(apiHost);
  const host = isAnyAddress ? "127.0.0.1" : apiHost.includes(":") ? `[${apiHost}]` : apiHost;
  const headers = apiKey === "" ? {} : { Authorization: `Bearer ${apiKey}` };
  const server = mcpServer({
    city: remoteService(new ServiceClient(`http://127.0.0.1:${cityPort}`)),
    music: remoteService(new ServiceClient(`http://${host}:${apiPort}`, headers)),
    savesFiles: true,
  });
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
    process.stdin.once("end", resolve);
  });
  await server.connect(new StdioServerTransport());
  await closed;
  await server.close();
}
