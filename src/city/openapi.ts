/** OpenAPI 3.1 document of the bridge, from the schemas of its commands and reads. */
import { z } from "zod";
import {
  buildDocument,
  type Endpoint,
  type JsonSchema,
  json,
  type OpenApiDocument,
  reference,
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

type Command = Pick<CommandRoute, "path" | "summary" | "fields">;
type Parameters = Readonly<Record<string, z.ZodType>>;

const QUIET = z.boolean().default(false).describe("Adds no line to the overlay.");
const withQuiet = (parameters?: Parameters) => ({ ...parameters, quiet: QUIET });

/** The operation id of a command is the last part of its path; that of a read is its whole path. */
export function openApiDocument(
  version: string,
  commands: readonly Command[],
  reads: readonly ReadRoute[],
): OpenApiDocument {
  const endpoints = [
    reading("/health", "Whether a city is loaded", {}),
    reading("/capture", "The map as a PNG", withQuiet(CAPTURE_PARAMETERS), { "image/png": { schema: {} } }),
    ...reads.map(({ path, label, parameters }) => reading(path, label, withQuiet(parameters))),
    ...commands.map(command),
  ];
  const info = { title: "Carillon city bridge", version, description: DESCRIPTION };
  const components = { schemas: SCHEMAS, securitySchemes: {} };
  return buildDocument({ info, components }, endpoints, { type: "integer" });
}

function command({ path, summary, fields }: Command): Endpoint {
  return {
    method: "post",
    path,
    tags: ["Commands"],
    operationId: path.slice(path.lastIndexOf("/") + 1),
    summary,
    security: [],
    parameters: [],
    requestBody: { content: json(schemaOf(fields)) },
    responses: { 200: { description: "Done", content: json(reference("Reply")) } },
    errors: ERRORS,
  };
}

function reading(
  path: string,
  summary: string,
  parameters: Parameters,
  content = json(reference("State")),
): Endpoint {
  return {
    method: "get",
    path,
    tags: ["Reads"],
    operationId: `read${path.replace(/[^A-Za-z]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    security: [],
    parameters: Object.entries(parameters).map(([name, type]) => ({
      name,
      in: "query",
      schema: schemaOf(type),
    })),
    responses: { 200: { description: "Done", content } },
    errors: ERRORS,
  };
}

/** JSON schema of a field in a request. */
function schemaOf(type: z.ZodType): JsonSchema {
  return toJsonSchema(type, "input", (partSchema, part) => {
    // Add the defaults that zod omits: those of fields that may also be sent as text.
    if (part instanceof z.ZodDefault) partSchema.default = part.def.defaultValue;
  });
}
