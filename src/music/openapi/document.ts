/** The OpenAPI 3.1 document: made of the schemas that parse and of those that answers are checked against. */
import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { namesOf } from "../../parameters.js";
import { resultRecordSchema } from "../queue/task-status.js";
import { errorAnswer } from "./answers.js";

export type JsonSchema = Readonly<Record<string, unknown>>;
/**
 * Parameters of a body or a query by the service's names, and objects of such; or JSON Schema where they are no list at
 * all.
 */
export type Parameters =
  | { shape: Readonly<Record<string, z.ZodType>>; objects?: Readonly<Record<string, Parameters>> }
  | { json: JsonSchema };

/** What the document says of an endpoint. */
export interface Operation {
  tag: "Tasks" | "Words" | "Chat" | "Models" | "Adapters" | "Training" | "Data sets" | "Service";
  summary: string;
  query?: Parameters;
  headers?: Readonly<Record<string, string>>;
  body?: Parameters;
  /** The fields of files, where the body may hold some. */
  files?: readonly string[];
  /** The data of the envelope; what a media type holds where it is no JSON in the envelope. */
  answer: z.ZodType | { media: string; schema?: z.ZodType; description: string };
  /** Statuses of failures beside those that all endpoints of the method have. */
  errors?: readonly number[];
  /** Also open to those without the key. */
  isOpen?: boolean;
  /** The key may stand in the query, for what a page cannot give headers. */
  takesKeyInQuery?: boolean;
  example?: JsonSchema;
}

const COMPONENTS = "#/components/schemas/";
/** What every endpoint may answer, and those that take a body. */
const COMMON_ERRORS = [400, 401, 403, 500, 503];
const BODY_ERRORS = [415];
const ERRORS: Readonly<Record<number, string>> = {
  400: "The request cannot be done as it stands; `detail` names the field and the value",
  401: "The key is missing or wrong",
  403: "Not for this origin, host or path",
  404: "There is no such thing",
  409: "Not now: it changed meanwhile, or another one is under way",
  415: "Content type that this endpoint does not take",
  416: "Range beyond the end",
  422: "The Idempotency-Key was used for another body",
  429: "The queue is full, or too much of this client waits; `Retry-After` says how long",
  500: "The server is at fault; its log says why",
  501: "A fleet does not do this",
  503: "Short of something that comes back; `Retry-After` says when",
  507: "The server's disk is full",
};
const KEYS = [{ bearer: [] }, { header: [] }];
const QUERY_KEY = [{ query: [] }];
const FORMS = ["application/json", "application/x-www-form-urlencoded"];

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: JsonSchema };
}

export interface OpenApiOperation {
  tags: string[];
  operationId: string;
  summary: string;
  security: object[];
  parameters: { name: string; in: "path" | "query" | "header"; description?: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema; example?: JsonSchema }> };
  responses: Record<
    string | number,
    { description: string; content?: Record<string, { schema: JsonSchema }> }
  >;
}

/** @param operations by method and path, as `routes/endpoints.ts` has them */
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
  // What only the text of another answer holds.
  reference(resultRecordSchema);
  return {
    openapi: "3.1.1",
    info: {
      title: "Carillon",
      version,
      description:
        "Music generation. A parameter goes by its name or any in `x-aliases`; forms, and text in JSON, may spell numbers and booleans as text, and a field that is null or blank counts as left out. Numbers out of their range are clamped, with a line in `warnings`, unless the server is set to refuse them. Answers stand in an envelope: `data`, `code`, `error`, `timestamp`, `extra`.",
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

/** An optional part gives two paths. */
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
  const { tag, summary, query, headers = {}, body, files, answer, errors = [], example } = operation;
  const text = { type: "string" };
  const inQuery = query === undefined ? [] : Object.entries(propertiesOf(query));
  const failure = { "application/json": { schema: reference(errorAnswer) } };
  const takesBody = ["POST", "PUT", "PATCH"].includes(method);
  const statuses = [...new Set([...COMMON_ERRORS, ...(takesBody ? BODY_ERRORS : []), ...errors])].sort();
  return {
    tags: [tag],
    operationId: operationId(method, path),
    summary,
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
    ...(body && { requestBody: { content: bodyContent(body, files, example) } }),
    responses: {
      200: successOf(answer, reference),
      ...Object.fromEntries(
        statuses.map((status) => [
          status,
          { description: ERRORS[status] ?? STATUS_CODES[status] ?? "", content: failure },
        ]),
      ),
      default: { description: "Any other failure", content: failure },
    },
  };
}

function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "" && word !== "v1");
  const parts = words.map((word) => word[0]?.toUpperCase() + word.slice(1));
  return [method.toLowerCase(), ...parts].join("");
}

function bodyContent(body: Parameters, files: readonly string[] | undefined, example?: JsonSchema) {
  const schema = schemaOfBody(body);
  const content = Object.fromEntries(FORMS.map((type) => [type, { schema, ...(example && { example }) }]));
  if (files === undefined) return content;
  const parts = Object.fromEntries(
    files.map((name) => [name, { type: "string", contentMediaType: "audio/*", description: "a recording" }]),
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

/** By the names that clients use. */
function propertiesOf(parameters: Parameters): Record<string, JsonSchema> {
  if ("json" in parameters) return parameters.json.properties as Record<string, JsonSchema>;
  const entries = Object.entries(parameters.shape).map(([key, type]) => {
    const [name, ...aliases] = namesOf(type) ?? [key];
    const { $schema, ...schema } = toJsonSchema(type);
    return [name, { ...schema, ...(aliases.length > 0 && { "x-aliases": aliases }) }];
  });
  const objects = Object.entries(parameters.objects ?? {}).map(([name, inner]) => [
    name,
    schemaOfBody(inner),
  ]);
  return Object.fromEntries([...entries, ...objects]);
}

function requiredOf(parameters: Parameters): string[] {
  if ("json" in parameters) return (parameters.json.required as string[] | undefined) ?? [];
  return Object.entries(parameters.shape)
    .filter(([, type]) => !type.safeParse(undefined).success)
    .map(([key, type]) => (namesOf(type) ?? [key])[0] as string);
}

/** With what has a name of its own among the components. */
function jsonSchemaOf(type: z.ZodType, schemas: Record<string, JsonSchema>): JsonSchema {
  const { $schema, $defs = {}, ...schema } = toJsonSchema(type);
  const moved = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', `"${COMPONENTS}`)) as JsonSchema;
  for (const [name, definition] of Object.entries($defs)) {
    // zod writes the name into the schema, where JSON Schema has no such word.
    const { id, ...named } = moved(definition);
    schemas[name] = named;
  }
  return moved(schema);
}

function toJsonSchema(type: z.ZodType) {
  return z.toJSONSchema(type, {
    io: "output",
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      // What every integer is bound by says nothing.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
}
