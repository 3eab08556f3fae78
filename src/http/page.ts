/** Serves a web page built from src/web/ into dist/web/. */
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Request, type RequestHandler, type Response, Router } from "express";
import compressedFiles from "express-static-gzip";

/** The relative path to dist/web is the same from src/http/ and dist/http/. */
export const PAGES = fileURLToPath(new URL("../../dist/web", import.meta.url));

type Policy = Readonly<Record<string, string>>;

/** Content-Security-Policy of all pages: no external or inline resources, and no framing. */
const POLICY: Policy = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self'",
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
};

export interface Page {
  /** Folder in dist/web; "": dist/web itself. */
  folder: string;
  /** URL path of the page itself; default: / */
  address?: string;
  /** URL path of the page's files, such as /page. */
  path: string;
  /** Overrides of the strict Content-Security-Policy. */
  policy?: Policy;
  /** Tags for the head of the page that depend on the request. */
  tags?: (request: Request) => string;
}

export function pageHeaders(changes: Policy = {}): Record<string, string> {
  const directives = Object.entries({ ...POLICY, ...changes });
  return {
    "Content-Security-Policy": directives.map((directive) => directive.join(" ")).join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  };
}

/** API documentation: Swagger UI, which loads openapi.json. It needs inline styles and inline images. */
export const DOCS: Page = {
  folder: "docs",
  address: "/docs",
  path: "/docs",
  policy: { "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data:" },
};

/** @param file path within dist/web */
export async function sendWithTags(response: Response, file: string, tags: string): Promise<void> {
  const html = await readFile(`${PAGES}/${file}`, "utf8");
  response.type("html").send(html.replace("</head>", () => `${tags}</head>`));
}

export function pageRoutes({ folder, address = "/", path, policy, tags }: Page): Router {
  const root = folder === "" ? PAGES : `${PAGES}/${folder}`;
  const headers = pageHeaders(policy);
  const secure: RequestHandler = (_request, response, next) => {
    response.set(headers);
    next();
  };
  const router = Router({ caseSensitive: true, strict: true });
  const texts = existsSync(`${root}/languages`) ? readdirSync(`${root}/languages`) : [];
  router.get(address, secure, (request, response) => {
    const file = textsOf(request, texts);
    if (file !== null)
      response.set("Link", `<${path}/languages/${file}>; rel=preload; as=fetch; crossorigin`);
    response.vary("Accept-Language");
    if (tags) return sendWithTags(response, `${folder}/index.html`, tags(request));
    response.sendFile("index.html", { root, cacheControl: false });
  });
  const files = { index: false, redirect: false, cacheControl: false } as const;
  router.use(
    path,
    secure,
    compressedFiles(root, { enableBrotli: true, orderPreference: ["br"], serveStatic: files }),
  );
  return router;
}

/** File with the page's texts in the language of the browser, which need not wait for the script; null for English. */
function textsOf(request: Request, files: readonly string[]): string | null {
  const codes = files.filter((name) => name.endsWith(".json")).map((name) => name.replace(".json", ""));
  const code = request.acceptsLanguages(["en", ...codes]);
  return code === false || code === "en" ? null : `${code}.json`;
}
