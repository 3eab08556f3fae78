/** Validates responses against the OpenAPI document. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { openApiDocument } from "../../src/music/openapi/document.js";
import { ENDPOINTS } from "../../src/music/routes/endpoints.js";

const DOCUMENT = "openapi.json";
export const document = openApiDocument("test", ENDPOINTS);
// Not strict, because OpenAPI has keywords that JSON Schema lacks.
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, DOCUMENT);
const validators = new Map<string, ValidateFunction>();

const templates = Object.keys(document.paths).map((template) => ({
  template,
  pattern: new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`),
}));

/** Path of the model list in OpenRouter format, which the document does not describe. */
const OPENROUTER_MODELS = "/openrouter/v1/models";

/** @throws Error if the document lacks the endpoint or status, or the body does not match its schema */
export function checkAnswer(method: string, url: string, status: number, body: unknown): void {
  const { pathname } = new URL(url);
  if (pathname === OPENROUTER_MODELS) return;
  const path = pathname.replace(/^\/openrouter/, "");
  const matching = templates.filter(({ pattern }) => pattern.test(path)).map(({ template }) => template);
  const template = matching.find((name) => name === path) ?? matching[0];
  const responses = document.paths[template ?? ""]?.[method.toLowerCase()]?.responses;
  // An undocumented path must answer with the common error schema.
  if (responses === undefined) {
    checkComponent("Error", body);
    return;
  }
  if (status >= 200 && status < 300 && responses[status] === undefined) {
    throw new Error(`${method} ${path} answered ${status}, which is not in the OpenAPI document`);
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
  throw new Error(`${what} does not match the OpenAPI document: ${ajv.errorsText(known.errors)}`);
}

function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}
