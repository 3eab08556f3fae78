/** OpenAPI 3.1 document of the bridge, from the schemas of its commands and reads. */
import { z } from "zod";
import {
  type JsonSchema,
  type OpenApiDocument,
  type OpenApiOperation,
  toJsonSchema,
} from "../http/openapi.js";
import { CAPTURE_PARAMETERS } from "./capture/capture.js";
import type { CommandRoute } from "./commands/command.js";
import type { ReadRoute } from "./read-route.js";

const DESCRIPTION =
  "Reads and changes a city. Commands are JSON objects; numbers may be sent as text, and fields that a command does not " +
  "know are ignored and named in `warnings`. A dry run checks everything and changes nothing. Refusals have status 500 and an " +
  "`error` that names the value. The bridge listens on loopback only and has no password.";

const ERRORS: Readonly<Record<number, string>> = {
  400: "The body is not a JSON object",
  403: "The host name or the origin is not allowed",
  404: "No endpoint or entity has this address",
  409: "No city is loaded, or the city was replaced before the command ran",
  500: "Refused: `error` contains the field and the value; nothing changed",
};

const ERROR = reference("Error");
const REPLY = reference("Reply");
const SCHEMAS: Record<string, JsonSchema> = {
  Error: schemaOf(z.object({ ok: z.literal(false), error: z.string() })),
  Reply: schemaOf(
    z.looseObject({
      ok: z.boolean(),
      dryRun: z.boolean(),
      message: z.string(),
      warnings: z.array(z.string()).optional(),
    }),
  ),
  State: schemaOf(z.looseObject({ ok: z.literal(true) })),
};

const QUIET = z.boolean().default(false).describe("Adds no line to the overlay.");

/**
 * Builds the document. The operation id of a command is the last part of its path; the operation id of a read
 * is its whole path.
 */
export function openApiDocument(
  version: string,
  commands: readonly Pick<CommandRoute, "path" | "summary" | "fields">[],
  reads: readonly ReadRoute[],
): OpenApiDocument {
  const paths: OpenApiDocument["paths"] = {
    "/health": { get: reading("/health", "Whether a city is loaded", {}, reference("State")) },
    "/capture": {
      get: {
        ...reading("/capture", "The map as a PNG", { ...CAPTURE_PARAMETERS, quiet: QUIET }, {}),
        responses: responses({ "image/png": { schema: {} } }),
      },
    },
  };
  for (const { path, label, parameters } of reads) {
    const wirePath = path.replace(/:(\w+)/g, "{$1}");
    paths[wirePath] = { get: reading(wirePath, label, { ...parameters, quiet: QUIET }, reference("State")) };
  }
  for (const { path, summary, fields } of commands) {
    paths[path] = {
      post: {
        tags: ["Commands"],
        operationId: path.slice(path.lastIndexOf("/") + 1),
        summary,
        security: [],
        parameters: [],
        requestBody: { content: { "application/json": { schema: schemaOf(fields) } } },
        responses: responses({ "application/json": { schema: REPLY } }),
      },
    };
  }
  return {
    openapi: "3.1.1",
    info: { title: "Carillon city bridge", version, description: DESCRIPTION },
    paths,
    components: { schemas: SCHEMAS, securitySchemes: {} },
  };
}

function reading(
  path: string,
  summary: string,
  parameters: Readonly<Record<string, z.ZodType>>,
  schema: JsonSchema,
): OpenApiOperation {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name as string,
    in: "path" as const,
    required: true,
    schema: { type: "integer" },
  }));
  const inQuery = Object.entries(parameters).map(([name, type]) => {
    return { name, in: "query" as const, schema: schemaOf(type) };
  });
  return {
    tags: ["Reads"],
    operationId: `read${path.replace(/[^A-Za-z]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    security: [],
    parameters: [...inPath, ...inQuery],
    responses: responses({ "application/json": { schema } }),
  };
}

function responses(content: Record<string, { schema: JsonSchema }>): OpenApiOperation["responses"] {
  const failure = { "application/json": { schema: ERROR } };
  return {
    200: { description: "Done", content },
    ...Object.fromEntries(
      Object.entries(ERRORS).map(([status, description]) => [status, { description, content: failure }]),
    ),
  };
}

function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** JSON schema of a field in a request. */
function schemaOf(type: z.ZodType): JsonSchema {
  const { $schema, ...schema } = toJsonSchema(type, "input", (partSchema, part) => {
    // Add the defaults that zod omits: those of fields that may also be sent as text.
    if (part instanceof z.ZodDefault) partSchema.default = part.def.defaultValue;
  });
  return schema;
}
