/**
 * GET /: the page that shows the city. Its files are built from src/web/ into dist/web/, which lies in the same place
 * seen from src/city/ and from dist/city/. The page is a client like any other: it uses the public endpoints alone.
 */
import { fileURLToPath } from "node:url";
import express, { type RequestHandler, Router } from "express";

const FILES = fileURLToPath(new URL("../../dist/web", import.meta.url));

/** Nothing from elsewhere, nothing inline, and no other page may frame this one. */
const SECURITY_HEADERS = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-cache",
};

export function pageRoutes(): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get("/", secure, (_request, response) =>
    response.sendFile("index.html", { root: FILES, cacheControl: false }),
  );
  router.use("/page", secure, express.static(FILES, { index: false, redirect: false, cacheControl: false }));
  return router;
}

const secure: RequestHandler = (_request, response, next) => {
  response.set(SECURITY_HEADERS);
  next();
};
