import type { RequestHandler } from "express";

/** Matches /?ai_token=KEY/path, and /?ai_token=KEY/path?query. */
const APPENDED = /^\/\?ai_token=([^&/?]+)\/([^?]*)\??(.*)$/;

/**
 * Clients append paths to a base address such as http://host:8001/?ai_token=KEY, whose query then holds the path.
 * Moves the path to its place.
 */
export const keyFromBaseAddress: RequestHandler = (request, _response, next) => {
  const [, key, path, query] = APPENDED.exec(request.url) ?? [];
  if (key !== undefined) request.url = `/${path}?ai_token=${key}${query ? `&${query}` : ""}`;
  next();
};
