/**
 * MCP over streamable HTTP, without sessions: one MCP server per request. A tool call is a request to an
 * endpoint of this server with the caller's credentials, so hosts, origins and keys are checked as usual.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { RequestHandler } from "express";
import type { Services } from "./server.js";
import { ServiceClient } from "./service-client.js";

/** Headers that authenticate the caller. */
const CREDENTIALS = ["authorization", "x-api-key", "cookie"] as const;

/** POST only: without sessions there is no stream to open or close. */
export function mcpRoute(service: "city" | "music"): RequestHandler {
  return async (request, response) => {
    const services: Services = { [service]: new ServiceClient(ownUrl(request), credentialsOf(request)) };
    // Most servers get no MCP request, so these modules are imported on the first one.
    const [{ StreamableHTTPServerTransport }, { mcpServer }] = await Promise.all([
      import("@modelcontextprotocol/sdk/server/streamableHttp.js"),
      import("./server.js"),
    ]);
    const server = mcpServer(services);
    const transport = new StreamableHTTPServerTransport({});
    response.on("close", () => {
      void transport.close();
      void server.close();
    });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    const body = Buffer.isBuffer(request.body) ? parsed(request.body) : request.body;
    await transport.handleRequest(request, response, body);
  };
}

/** Parses JSON. Invalid JSON becomes an invalid MCP message, so that the transport responds with 400. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return { jsonrpc: "invalid" };
  }
}

/** Base URL of this server at the address on which the request arrived. */
function ownUrl({ socket, baseUrl }: Parameters<RequestHandler>[0]): string {
  const address = (socket.localAddress ?? "127.0.0.1").replace(/^::ffff:/, "");
  return `http://${address.includes(":") ? `[${address}]` : address}:${socket.localPort}${baseUrl}`;
}

function credentialsOf({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return Object.fromEntries(CREDENTIALS.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
}
