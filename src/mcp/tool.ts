/** Shape of an MCP tool, and functions that build schemas and results. */
import type { CallToolResult, Tool as Definition } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchema, OpenApiOperation } from "../http/openapi.js";
import type { ServiceResponse } from "./service-client.js";

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
export const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

export function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): Definition["inputSchema"] {
  return { type: "object", properties: properties as Record<string, object>, required: [...required] };
}

export function bodySchema({ requestBody }: OpenApiOperation): Definition["inputSchema"] {
  return requestBody?.content["application/json"]?.schema as Definition["inputSchema"];
}

export function querySchema({ parameters }: OpenApiOperation): Record<string, JsonSchema> {
  const inQuery = parameters.filter(({ in: place, name }) => place === "query" && name !== "quiet");
  return Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema]));
}

/** Result with the response text, marked as an error unless the status is 200. */
export function textResult({ status, bytes }: ServiceResponse): CallToolResult {
  return { content: [{ type: "text", text: bytes.toString() }], isError: status !== 200 };
}

export function errorResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
