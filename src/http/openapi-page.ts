/** An OpenAPI document, and its rendering as one HTML page without scripts or external resources. */
import { createHash } from "node:crypto";

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

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.875em ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; background: color-mix(in srgb, currentColor 8%, transparent); }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
summary { cursor: pointer; padding: 0.25rem 0; }
th { font-weight: inherit; }
nav ul { columns: 20rem; padding: 0; list-style: none; }
@media (max-width: 40rem) {
  tr, th, td { display: block; border: 0; padding: 0; }
  tr { padding: 0.5rem 0; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
}
`;

/** Hash of the page's style for the Content-Security-Policy. */
export const PAGE_STYLE = `'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`;

export function openApiPage({ info, paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))];
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(tag));
    return `<h2 id="${anchor(tag)}">${html(tag)}</h2>${own.map(section).join("")}`;
  });
  const shapes = Object.entries(components.schemas).map(
    ([name, schema]) => `<h3 id="${name}">${name}</h3>${properties(schema)}`,
  );
  const links = [...tags, "Shapes"].map((tag) => `<li><a href="#${anchor(tag)}">${html(tag)}</a></li>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(info.title)} API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${html(info.title)} ${html(info.version)}</h1>
<p>${prose(info.description)}</p>
<p>Machine-readable: <a href="openapi.json">openapi.json</a></p>
<nav aria-label="Sections"><ul>${links.join("")}</ul></nav>
<main>${sections.join("")}
<h2 id="${anchor("Shapes")}">Shapes</h2>${shapes.join("")}</main>
</body>
</html>
`;
}

function section({ method, path, operation }: { method: string; path: string; operation: OpenApiOperation }) {
  const { summary, parameters, requestBody, responses, security, operationId } = operation;
  const body = requestBody?.content["application/json"];
  const inputs = parameters.map(({ name, in: place, description, schema }) =>
    row(name, { ...schema, ...(description && { description }) }, place),
  );
  const parts = [
    security.length === 0 ? "<p>Needs no key.</p>" : "",
    inputs.length > 0 ? table(inputs) : "",
    body ? `<h4>Body</h4>${properties(body.schema)}` : "",
    body?.example ? `<pre>${html(JSON.stringify(body.example, null, 2))}</pre>` : "",
    `<h4>Answers</h4>${table(Object.entries(responses).map(answer))}`,
  ];
  return `<details id="${operationId}"><summary><code>${method} ${html(path)}</code> ${html(summary)}</summary>${parts.join("")}</details>`;
}

function answer([status, { description, content = {} }]: [string, OpenApiOperation["responses"][string]]) {
  const shapes = Object.entries(content).map(([type, { schema }]) => {
    const data = (schema.properties as Record<string, JsonSchema> | undefined)?.data;
    return `${html(type)} ${shown(data ?? schema)}`;
  });
  return `<tr><th scope="row">${status}</th><td>${prose(description)}</td><td>${shapes.join("<br>")}</td></tr>`;
}

function properties(schema: JsonSchema): string {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const required = (schema.required ?? []) as string[];
  const description = schema.description ? `<p>${prose(String(schema.description))}</p>` : "";
  if (fields.length === 0) return description;
  return (
    description +
    table(fields.map(([name, field]) => row(name, field, required.includes(name) ? "required" : "")))
  );
}

function row(name: string, schema: JsonSchema, note: string): string {
  const aliases = ((schema["x-aliases"] ?? []) as string[]).map((alias) => `<code>${html(alias)}</code>`);
  const help = [String(schema.description ?? ""), note].filter(Boolean).map(prose);
  const also = aliases.length > 0 ? [`also ${aliases.join(" ")}`] : [];
  return `<tr><th scope="row"><code>${html(name)}</code></th><td>${shown(schema)}</td><td>${[...help, ...also].join("<br>")}</td></tr>`;
}

function table(rows: readonly string[]): string {
  return `<div class="table"><table>${rows.join("")}</table></div>`;
}

/** Type, range and default of a value. */
function shown(schema: JsonSchema): string {
  const { $ref, anyOf, enum: words, type, minimum, maximum, items, default: fallback } = schema;
  if (typeof $ref === "string") {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return `<a href="#${name}">${name}</a>`;
  }
  const range = minimum === undefined && maximum === undefined ? "" : ` ${minimum ?? ""} to ${maximum ?? ""}`;
  const kinds = [type ?? []].flat().join(" or ");
  const what = Array.isArray(anyOf)
    ? (anyOf as JsonSchema[]).map(shown).join(" or ")
    : Array.isArray(words)
      ? words.map((word) => `<code>${html(JSON.stringify(word))}</code>`).join(" ")
      : html(kinds + range) + (type === "array" && items ? ` of ${shown(items as JsonSchema)}` : "");
  const hasDefault = fallback !== undefined && fallback !== null;
  return hasDefault ? `${what}, default <code>${html(JSON.stringify(fallback))}</code>` : what;
}

function anchor(tag: string): string {
  return tag.toLowerCase().replaceAll(" ", "-");
}

/** Escapes text and renders `backticks` as code. */
function prose(text: string): string {
  return html(text).replace(/`([^`]*)`/g, "<code>$1</code>");
}

function html(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
