/** Builds the OpenAPI 3.1 document from the request and response schemas. */
import { STATUS_CODES } from "node:http";
import type { z } from "zod";
import {
  type JsonSchema,
  type OpenApiDocument,
  type OpenApiOperation,
  toJsonSchema,
} from "../../http/openapi.js";
import { namesOf } from "../../parameters.js";
import { resultRecordSchema } from "../queue/task-status.js";
import { errorAnswer } from "./answers.js";

/**
 * Parameters of a body or query: zod types by name, or a JSON Schema. `objects` holds the parameters of
 * nested objects by name.
 */
export type Parameters =
  | { shape: Readonly<Record<string, z.ZodType>>; objects?: Readonly<Record<string, Parameters>> }
  | { json: JsonSchema };

export interface Operation {
  tag: "Tasks" | "Text" | "Chat" | "Models" | "Adapters" | "Training" | "Data sets" | "Service";
  summary: string;
  /** Description in Markdown, with the details that summary and schemas leave out. */
  description?: string;
  query?: Parameters;
  headers?: Readonly<Record<string, string>>;
  body?: Parameters;
  /** File fields of multipart bodies. */
  files?: readonly string[];
  /** Schema of `data` in the response envelope, or a description of a response without an envelope. */
  answer: z.ZodType | { media: string; schema?: z.ZodType; description: string };
  /** Error statuses besides COMMON_ERRORS and BODY_ERRORS. */
  errors?: readonly number[];
  /** Whether the endpoint can be used without an API key. */
  isOpen?: boolean;
  /** Whether the API key may also be sent in the query, for pages that cannot set headers. */
  takesKeyInQuery?: boolean;
  example?: JsonSchema;
}

const COMPONENTS = "#/components/schemas/";
/** Error statuses of all endpoints. Endpoints with a body also have BODY_ERRORS. */
const COMMON_ERRORS = [400, 401, 403, 500, 503];
const BODY_ERRORS = [415];
const ERRORS: Readonly<Record<number, string>> = {
  400: "Invalid request; `detail` names the field and the value",
  401: "Missing or wrong key",
  403: "Origin, host or path not allowed",
  404: "Not found",
  409: "Conflict: changed meanwhile, or another run is in progress",
  415: "Unsupported content type",
  416: "Range not satisfiable",
  422: "Idempotency-Key used for a different body",
  429: "Queue full, or too many waiting requests of this client; see `Retry-After`",
  500: "Server error; see its log",
  501: "Not available in a fleet",
  503: "Temporarily unavailable; see `Retry-After`",
  507: "Server disk full",
};
const KEYS = [{ bearer: [] }, { header: [] }];
const QUERY_KEY = [{ query: [] }];
const FORMS = ["application/json", "application/x-www-form-urlencoded"];

/** @param operations all endpoints, by method and path, such as `GET /health` */
export function openApiDocument(
  version: string,
  operations: Readonly<Record<string, Operation>>,
): OpenApiDocument {
  const schemas: Record<string, JsonSchema> = {};
  const paths: OpenApiDocument["paths"] = {};
  const reference = (type: z.ZodType) => jsonSchemaOf(type, schemas);
  for (const [endpoint, operation] of Object.entries(operations)) {
    const [method = "", route = ""] = endpoint.split(" ");
    for (const path of pathsOf(route)) {
      paths[path] = { ...paths[path], [method.toLowerCase()]: describe(method, path, operation, reference) };
    }
  }
  // Add this schema explicitly. No other schema refers to it, because responses contain result records as
  // JSON text.
  reference(resultRecordSchema);
  return {
    openapi: "3.1.1",
    info: {
      title: "Carillon",
      version,
      description:
        "Music generation. Parameters have the aliases in `x-aliases`. Numbers and booleans may be sent as text; null and blank fields count as absent. Numbers out of range are clamped with a line in `warnings`, unless SVC_RANGE_POLICY=refuse. Errors are in `detail`. Responses are wrapped in an envelope: `data`, `code`, `error`, `timestamp`, `extra`.",
    },
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        header: { type: "apiKey", in: "header", name: "X-API-Key" },
        query: { type: "apiKey", in: "query", name: "ai_token" },
      },
    },
  };
}

/** Returns the OpenAPI paths of an express route: two if the route has an optional part. */
function pathsOf(route: string): string[] {
  const whole = route.replace(/\{([^}]*)\}/, "$1").replace(/:(\w+)/g, "{$1}");
  const short = route.replace(/\{[^}]*\}/, "").replace(/:(\w+)/g, "{$1}");
  return [...new Set([short, whole])];
}

function describe(
  method: string,
  path: string,
  operation: Operation,
  reference: (type: z.ZodType) => JsonSchema,
): OpenApiOperation {
  const { summary, description, query, headers = {}, body, errors = [] } = operation;
  const text = { type: "string" };
  const inQuery = query === undefined ? [] : Object.entries(propertiesOf(query));
  const content = { "application/json": { schema: reference(errorAnswer) } };
  const failed = (description = "") => ({ description, content });
  const takesBody = ["POST", "PUT", "PATCH"].includes(method);
  const statuses = [...new Set([...COMMON_ERRORS, ...(takesBody ? BODY_ERRORS : []), ...errors])].sort();
  return {
    tags: [operation.tag],
    operationId: operationId(method, path),
    summary,
    ...(description && { description }),
    security: operation.isOpen ? [] : [...KEYS, ...(operation.takesKeyInQuery ? QUERY_KEY : [])],
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        name: name as string,
        in: "path" as const,
        required: true,
        schema: text,
      })),
      ...inQuery.map(([name, schema]) => ({
        name,
        in: "query" as const,
        ...(requiredOf(query as Parameters).includes(name) && { required: true }),
        schema,
      })),
      ...Object.entries(headers).map(([name, description]) => ({
        name,
        in: "header" as const,
        description,
        schema: text,
      })),
    ],
    ...(body && { requestBody: { content: bodyContent(body, operation) } }),
    responses: {
      200: successOf(operation.answer, reference),
      ...Object.fromEntries(
        statuses.map((status) => [status, failed(ERRORS[status] ?? STATUS_CODES[status])]),
      ),
      default: failed("Any other failure"),
    },
  };
}

function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "" && word !== "v1");
  const parts = words.map((word) => word[0]?.toUpperCase() + word.slice(1));
  return [method.toLowerCase(), ...parts].join("");
}

function bodyContent(body: Parameters, { files, example }: Operation) {
  const schema = schemaOfBody(body);
  const content = Object.fromEntries(FORMS.map((type) => [type, { schema, ...(example && { example }) }]));
  if (files === undefined) return content;
  const parts = Object.fromEntries(
    files.map((name) => [name, { type: "string", contentMediaType: "audio/*", description: "audio file" }]),
  );
  const properties = { ...(schema.properties as object), ...parts };
  return { ...content, "multipart/form-data": { schema: { ...schema, properties } } };
}

function successOf(answer: Operation["answer"], reference: (type: z.ZodType) => JsonSchema) {
  if ("media" in answer) {
    const schema = answer.schema === undefined ? {} : reference(answer.schema);
    return { description: answer.description, content: { [answer.media]: { schema } } };
  }
  const schema = {
    type: "object",
    properties: {
      data: reference(answer),
      code: { const: 200 },
      error: { type: "null" },
      timestamp: { type: "integer", description: "milliseconds since the epoch" },
      extra: { type: "null" },
    },
    required: ["data", "code", "error", "timestamp", "extra"],
  };
  return { description: "Done", content: { "application/json": { schema } } };
}

function schemaOfBody(body: Parameters): JsonSchema {
  if ("json" in body) return body.json;
  const required = requiredOf(body);
  return { type: "object", properties: propertiesOf(body), ...(required.length > 0 && { required }) };
}

/** Returns the JSON Schema of each parameter, by the name that clients send. */
function propertiesOf(parameters: Parameters): Record<string, JsonSchema> {
  if ("json" in parameters) return parameters.json.properties as Record<string, JsonSchema>;
  const entries = Object.entries(parameters.shape).map(([key, type]) => {
    const [name, ...aliases] = namesOf(type) ?? [key];
    const { $schema, ...schema } = toJsonSchema(type, "output");
    return [name, { ...schema, ...(aliases.length > 0 && { "x-aliases": aliases }) }];
  });
  const objects = Object.entries(parameters.objects ?? {}).map(([name, body]) => [name, schemaOfBody(body)]);
  return Object.fromEntries([...entries, ...objects]);
}

function requiredOf(parameters: Parameters): string[] {
  if ("json" in parameters) return (parameters.json.required as string[] | undefined) ?? [];
  return Object.entries(parameters.shape)
    .filter(([, type]) => !type.safeParse(undefined).success)
    .map(([key, type]) => (namesOf(type) ?? [key])[0] as string);
}

/** Returns the JSON Schema of a zod type, and adds the named types in it to `schemas`. */
function jsonSchemaOf(type: z.ZodType, schemas: Record<string, JsonSchema>): JsonSchema {
  const { $schema, $defs = {}, ...schema } = toJsonSchema(type, "output");
  const withComponents = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', `"${COMPONENTS}`)) as JsonSchema;
  for (const [name, definition] of Object.entries($defs)) {
    // Remove the keyword `id`, which zod adds and JSON Schema does not have.
    const { id, ...named } = withComponents(definition);
    schemas[name] = named;
  }
  return withComponents(schema);
}
