/** Builds the OpenAPI 3.1 document from the request and response schemas. */
import { STATUS_CODES } from "node:http";
import type { z } from "zod";
import {
  buildDocument,
  type Endpoint,
  type JsonSchema,
  json,
  type OpenApiDocument,
  reference,
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
  tag:
    | "Tasks"
    | "Text"
    | "Chat"
    | "Models"
    | "Adapters"
    | "Training"
    | "Data sets"
    | "Service"
    | "Clients of acestep.cpp";
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
  /** Named schema of error responses; default: `errorAnswer`. */
  errorSchema?: z.ZodType;
  /** Whether the endpoint can be used without an API key. */
  isOpen?: boolean;
  /** Whether the API key may also be sent in the query, for pages that cannot set headers. */
  takesKeyInQuery?: boolean;
  example?: JsonSchema;
}

const DESCRIPTION =
  "Music generation. Parameters have the aliases in `x-aliases`. Numbers and booleans may be sent as text; null and blank fields count as absent. Numbers out of range are clamped with a line in `warnings`, unless SVC_RANGE_POLICY=refuse. Errors are in `detail`. Responses are wrapped in an envelope: `data`, `code`, `error`, `timestamp`, `extra`.";
const SECTIONS = [
  {
    name: "Clients of acestep.cpp",
    description:
      "The interface of acestep.cpp's server. Its base address is that of this server. A job is a task, and its id is the task's: it is listed, followed, cancelled and kept as other tasks are. Errors are in `error`. With a key the base address may be `http://HOST:PORT/?ai_token=KEY`; `http://HOST:PORT/?wait=1` is that of clients of the time before jobs, such as the page of acestep.vst3. Steps and shift act on turbo models, and empty fields of `/synth` stay empty, unlike in `POST /release_task`.",
  },
];
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
const SECURITY = {
  bearer: { type: "http", scheme: "bearer" },
  header: { type: "apiKey", in: "header", name: "X-API-Key" },
  query: { type: "apiKey", in: "query", name: "ai_token" },
};
const TEXT = { type: "string" };
const FORMS = ["application/json", "application/x-www-form-urlencoded"];

/** @param operations all endpoints, by method and path, such as `GET /health` */
export function openApiDocument(
  version: string,
  operations: Readonly<Record<string, Operation>>,
): OpenApiDocument {
  const schemas: Record<string, JsonSchema> = {};
  const schemaOf = (type: z.ZodType) => jsonSchemaOf(type, schemas);
  const endpoints = Object.entries(operations).flatMap(([endpoint, operation]) => {
    const [method = "", route = ""] = endpoint.split(" ");
    return pathsOf(route).map((path) => describe(method, path, operation, schemaOf));
  });
  schemaOf(errorAnswer);
  // No other schema refers to this one, because responses contain result records as JSON text.
  schemaOf(resultRecordSchema);
  const info = { title: "Carillon", version, description: DESCRIPTION };
  const components = { schemas, securitySchemes: SECURITY };
  return buildDocument({ info, tags: [...SECTIONS], components }, endpoints, TEXT);
}

/** Returns the paths of an express route: two if the route has an optional part. */
function pathsOf(route: string): string[] {
  const whole = route.replace(/\{([^}]*)\}/, "$1");
  const short = route.replace(/\{[^}]*\}/, "");
  return [...new Set([short, whole])];
}

function describe(
  method: string,
  path: string,
  operation: Operation,
  schemaOf: (type: z.ZodType) => JsonSchema,
): Endpoint {
  const { summary, description, query, headers = {}, body, errors = [] } = operation;
  const inQuery = query === undefined ? [] : Object.entries(propertiesOf(query));
  const takesBody = ["POST", "PUT", "PATCH"].includes(method);
  const statuses = [...COMMON_ERRORS, ...(takesBody ? BODY_ERRORS : []), ...errors];
  return {
    method: method.toLowerCase(),
    path,
    tags: [operation.tag],
    operationId: operationId(method, path),
    summary,
    ...(description && { description }),
    security: operation.isOpen ? [] : [...KEYS, ...(operation.takesKeyInQuery ? QUERY_KEY : [])],
    parameters: [
      ...inQuery.map(([name, schema]) => ({
        name,
        in: "query" as const,
        ...(requiredOf(query as Parameters).includes(name) && { required: true }),
        schema,
      })),
      ...Object.entries(headers).map(([name, description]) => {
        return { name, in: "header" as const, description, schema: TEXT };
      }),
    ],
    ...(body && { requestBody: { content: bodyContent(body, operation) } }),
    responses: { 200: successOf(operation.answer, schemaOf) },
    errors: {
      ...Object.fromEntries(statuses.map((status) => [status, ERRORS[status] ?? STATUS_CODES[status] ?? ""])),
      default: "Any other failure",
    },
    ...(operation.errorSchema && { errorSchema: schemaOf(operation.errorSchema) }),
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

function successOf(answer: Operation["answer"], schemaOf: (type: z.ZodType) => JsonSchema) {
  if ("media" in answer) {
    const schema = answer.schema === undefined ? {} : schemaOf(answer.schema);
    return { description: answer.description, content: { [answer.media]: { schema } } };
  }
  const schema = {
    type: "object",
    properties: {
      data: schemaOf(answer),
      code: { const: 200 },
      error: { type: "null" },
      timestamp: { type: "integer", description: "milliseconds since the epoch" },
      extra: { type: "null" },
    },
    required: ["data", "code", "error", "timestamp", "extra"],
  };
  return { description: "Done", content: json(schema) };
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
    return [name, { ...toJsonSchema(type, "output"), ...(aliases.length > 0 && { "x-aliases": aliases }) }];
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
  const { $defs = {}, ...schema } = toJsonSchema(type, "output");
  const withComponents = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', `"${reference("").$ref}`)) as JsonSchema;
  for (const [name, definition] of Object.entries($defs)) {
    // Remove the keyword `id`, which zod adds and JSON Schema does not have.
    const { id, ...named } = withComponents(definition);
    schemas[name] = named;
  }
  return withComponents(schema);
}
