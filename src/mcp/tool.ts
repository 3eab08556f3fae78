/** A tool of the MCP server, and what tools share. */
import type { CallToolResult, Tool as Listed } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchema, OpenApiOperation } from "../http/openapi.js";
import type { ServiceAnswer } from "./service-client.js";

export type Arguments = Readonly<Record<string, unknown>>;

export interface CallContext {
  readonly signal: AbortSignal;
  /** Reports progress from 0 to 1 to a client that asked for it. */
  readonly report: (progress: number, message: string) => Promise<void>;
}

export interface Tool {
  readonly listed: Listed;
  readonly call: (args: Arguments, context: CallContext) => Promise<CallToolResult>;
}

/** Reads only: clients may call it without asking. */
export const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

export function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): Listed["inputSchema"] {
  return { type: "object", properties: properties as Record<string, object>, required: [...required] };
}

export function bodySchema({ requestBody }: OpenApiOperation): Listed["inputSchema"] {
  return requestBody?.content["application/json"]?.schema as Listed["inputSchema"];
}

/** Query parameters by name. */
export function querySchema({ parameters }: OpenApiOperation): Record<string, JsonSchema> {
  const inQuery = parameters.filter(({ in: place, name }) => place === "query" && name !== "quiet");
  return Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema]));
}

/** The text of an answer; one that is no success is an error. */
export function textResult({ status, bytes }: ServiceAnswer): CallToolResult {
  return { content: [{ type: "text", text: bytes.toString() }], isError: status !== 200 };
}

export function errorResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
