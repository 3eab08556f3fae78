/** Types of an OpenAPI document, and conversion of zod types to JSON Schema. */
import { z } from "zod";

export type JsonSchema = Readonly<Record<string, unknown>>;

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
  description?: string;
  security: object[];
  parameters: { name: string; in: "path" | "query" | "header"; description?: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema; example?: JsonSchema }> };
  responses: Record<
    string | number,
    { description: string; content?: Record<string, { schema: JsonSchema }> }
  >;
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
  return z.toJSONSchema(type, {
    io,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      adapt?.(jsonSchema, zodSchema);
      // Omits the safe-integer bounds that zod adds to every integer.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
}
