/** Builds OpenAPI documents, and converts zod types to JSON Schema. */
import { z } from "zod";

export type JsonSchema = Readonly<Record<string, unknown>>;
/** Schemas of a body by media type. */
export type Content = Record<string, { schema: JsonSchema; example?: JsonSchema }>;

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  /** Descriptions of sections. */
  tags?: { name: string; description: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: JsonSchema };
}

export interface OpenApiOperation {
  tags: string[];
  operationId: string;
  summary: string;
  description?: string;
  security: object[];
  parameters: { name: string; in: "path" | "query" | "header"; description?: string; schema: JsonSchema }[];
  requestBody?: { content: Content };
  responses: Record<string | number, { description: string; content?: Content }>;
}

/** An operation of a path, without the parameters in the path and the error responses. */
export interface Endpoint extends OpenApiOperation {
  method: string;
  /** Path in the syntax of express, such as /v1/tasks/:id */
  path: string;
  /** Descriptions of the error responses, by status or "default". */
  errors: Readonly<Record<string, string>>;
  /** Schema of error responses; default: the named schema "Error". */
  errorSchema?: JsonSchema;
}

export function buildDocument(
  parts: Pick<OpenApiDocument, "info" | "tags" | "components">,
  endpoints: readonly Endpoint[],
  pathParameter: JsonSchema,
): OpenApiDocument {
  const paths: OpenApiDocument["paths"] = {};
  for (const { method, path: route, errors, errorSchema = reference("Error"), ...operation } of endpoints) {
    const inPath = [...route.matchAll(/:(\w+)/g)].map(([, name = ""]) => {
      return { name, in: "path" as const, required: true, schema: pathParameter };
    });
    const failures = Object.entries(errors).map(([status, description]) => {
      return [status, { description, content: json(errorSchema) }];
    });
    const path = route.replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][method] = {
      ...operation,
      parameters: [...inPath, ...operation.parameters],
      responses: { ...operation.responses, ...Object.fromEntries(failures) },
    };
  }
  return { openapi: "3.1.1", ...parts, paths };
}

export function json(schema: JsonSchema): Content {
  return { "application/json": { schema } };
}

/** Reference to a named schema of the document. */
export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * JSON Schema of a zod type.
 * @param adapt called for the type and each nested type; may change the schema in place
 */
export function toJsonSchema(
  type: z.ZodType,
  io: "input" | "output",
  adapt?: (schema: Record<string, unknown>, type: z.core.$ZodType) => void,
) {
  const { $schema, ...schema } = z.toJSONSchema(type, {
    io,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      adapt?.(jsonSchema, zodSchema);
      // Omits the safe-integer bounds that zod adds to every integer.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return schema;
}
