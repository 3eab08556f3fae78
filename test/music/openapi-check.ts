/** Holds every answer that a test gets to what the OpenAPI document says of it. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { openApiDocument } from "../../src/music/openapi/document.js";
import { ENDPOINTS } from "../../src/music/routes/endpoints.js";

const DOCUMENT = "openapi.json";
export const document = openApiDocument("test", ENDPOINTS);
// The words of OpenAPI that JSON Schema does not know.
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, DOCUMENT);
const validators = new Map<string, ValidateFunction>();

const templates = Object.keys(document.paths).map((template) => ({
  template,
  pattern: new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`),
}));

/** Endpoints of chat model servers, which the document leaves to theirs. */
const OPENROUTER_MODELS = "/openrouter/v1/models";

/** @throws where the document has no such endpoint, status or body */
export function checkAnswer(method: string, url: string, status: number, body: unknown): void {
  const { pathname } = new URL(url);
  if (pathname === OPENROUTER_MODELS) return;
  const path = pathname.replace(/^\/openrouter/, "");
  const matching = templates.filter(({ pattern }) => pattern.test(path)).map(({ template }) => template);
  const template = matching.find((name) => name === path) ?? matching[0];
  const responses = document.paths[template ?? ""]?.[method.toLowerCase()]?.responses;
  // What is nowhere in the document is refused, as everything refused is.
  if (responses === undefined) {
    checkComponent("Error", body);
    return;
  }
  if (status >= 200 && status < 300 && responses[status] === undefined) {
    throw new Error(`${method} ${path} answered ${status}, which the document does not know`);
  }
  const key = responses[status] === undefined ? "default" : String(status);
  const place = ["paths", template as string, method.toLowerCase(), "responses", key, "content"];
  const pointer = [...place, "application/json", "schema"].map(escapePointer).join("/");
  validate(`#/${pointer}`, body, `${method} ${path} ${status}`);
}

export function checkComponent(name: string, value: unknown): void {
  validate(`#/components/schemas/${name}`, value, name);
}

function validate(pointer: string, value: unknown, what: string): void {
  const known = validators.get(pointer) ?? ajv.compile({ $ref: DOCUMENT + pointer });
  validators.set(pointer, known);
  if (known(value)) return;
  throw new Error(`${what} is not as the document says: ${ajv.errorsText(known.errors)}`);
}

function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}
