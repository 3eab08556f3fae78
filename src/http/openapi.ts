/** Shape of an OpenAPI document. */

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
  security: object[];
  parameters: { name: string; in: "path" | "query" | "header"; description?: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema; example?: JsonSchema }> };
  responses: Record<
    string | number,
    { description: string; content?: Record<string, { schema: JsonSchema }> }
  >;
}
