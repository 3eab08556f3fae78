/**
 * MCP over streamable HTTP, without sessions: one MCP server per request. A tool call is a request to an
 * endpoint of this server with the caller's credentials, so hosts, origins and keys are checked as usual.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { RequestHandler } from "express";
import { measureJson } from "../http/json-scan.js";
import type { OpenApiDocument } from "../http/openapi.js";
import type { Services } from "./server.js";
import { ServiceClient } from "./service-client.js";

/** Headers that authenticate the caller. */
const CREDENTIALS = ["authorization", "x-api-key", "cookie"] as const;

/** Maximum number of messages in a batch. Clients send a few at most; newer versions of MCP have no batches. */
const MAX_BATCH = 10;
/** Maximum size, nesting depth and number of values of a body, so that parsing takes little time. */
const MAX_BYTES = 2 ** 20;
const MAX_DEPTH = 64;
const MAX_VALUES = 30_000;

/**
 * POST only: without sessions there is no stream to open or close.
 * @param document the service's OpenAPI document, which is built once
 */
export function mcpRoute(service: "city" | "music", document: () => OpenApiDocument): RequestHandler {
  return async (request, response) => {
    const client = new ServiceClient(ownUrl(request), credentialsOf(request));
    const services: Services = { [service]: { client, document } };
    const body = Buffer.isBuffer(request.body) ? parsed(request.body) : request.body;
    if (Array.isArray(body) && body.length > MAX_BATCH) {
      const message = `A batch must have at most ${MAX_BATCH} messages, not ${body.length}`;
      response.status(400).json({ jsonrpc: "2.0", error: { code: -32600, message }, id: null });
      return;
    }
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
    await transport.handleRequest(request, response, body);
  };
}

/** Parses JSON. Invalid or excessive JSON becomes an invalid MCP message, so that the transport responds with 400. */
function parsed(bytes: Buffer): unknown {
  try {
    if (bytes.length > MAX_BYTES) throw new SyntaxError("too long");
    const text = bytes.toString();
    const { depth, values } = measureJson(text);
    if (depth > MAX_DEPTH || values > MAX_VALUES) throw new SyntaxError("too many values");
    return JSON.parse(text);
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
