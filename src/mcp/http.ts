/**
 * MCP over streamable HTTP, without sessions: one server per request. The rules of the HTTP server before it (hosts,
 * origins, keys) apply, and so do those of each endpoint that a tool calls, with the caller's own headers.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { RequestHandler } from "express";
import type { Services } from "./server.js";
import { ServiceClient } from "./service-client.js";

/** Headers that prove who asks. */
const CREDENTIALS = ["authorization", "x-api-key", "cookie"] as const;

/**
 * POST only: without sessions there is no stream to open and none to end.
 * @param service whose tools this server has
 */
export function mcpRoute(service: "city" | "music"): RequestHandler {
  return async (request, response) => {
    const services: Services = { [service]: new ServiceClient(ownUrl(request), credentialsOf(request)) };
    // Loaded by the first request: most servers never get one.
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

/** Undefined for what is no JSON; the transport then answers 400. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return { jsonrpc: "invalid" };
  }
}

/** The address at which the request arrived. */
function ownUrl({ socket, baseUrl }: Parameters<RequestHandler>[0]): string {
  const address = (socket.localAddress ?? "127.0.0.1").replace(/^::ffff:/, "");
  return `http://${address.includes(":") ? `[${address}]` : address}:${socket.localPort}${baseUrl}`;
}

function credentialsOf({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return Object.fromEntries(CREDENTIALS.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
}
