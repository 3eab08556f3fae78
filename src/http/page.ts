/** The files of a page for people: a client like any other, built from src/web/ into dist/web/. */
import { fileURLToPath } from "node:url";
import express, { type RequestHandler, Router } from "express";

/** dist/web lies in the same place seen from src/http/ and from dist/http/. */
const PAGES = fileURLToPath(new URL("../../dist/web", import.meta.url));

/** Nothing from elsewhere, nothing inline, and no other page may frame this one. */
const POLICY: Readonly<Record<string, string>> = {
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
  /** Within dist/web; "" for all of it. */
  folder: string;
  /** Where its files are beside GET /, such as /page. */
  path: string;
  /** Directives of the Content-Security-Policy that differ from the strictest. */
  policy?: Readonly<Record<string, string>>;
}

/** Serves the page at GET /. */
export function pageRoutes({ folder, path, policy = {} }: Page): Router {
  const root = folder === "" ? PAGES : `${PAGES}/${folder}`;
  const directives = Object.entries({ ...POLICY, ...policy });
  const headers = {
    "Content-Security-Policy": directives.map((directive) => directive.join(" ")).join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  };
  const secure: RequestHandler = (_request, response, next) => {
    response.set(headers);
    next();
  };
  const router = Router({ caseSensitive: true, strict: true });
  router.get("/", secure, (_request, response) =>
    response.sendFile("index.html", { root, cacheControl: false }),
  );
  router.use(path, secure, express.static(root, { index: false, redirect: false, cacheControl: false }));
  return router;
}
