import type { RequestHandler } from "express";

/** Matches /?ai_token=KEY/path, /?wait=1/path and /?wait=1&ai_token=KEY/path?query. */
const APPENDED = /^\/\?((?:(?:ai_token|wait)=[^&/?]+&?)+)\/([^?]*)\??(.*)$/;

/**
 * Clients append paths to a base address such as http://host:8001/?ai_token=KEY, whose query then holds the path.
 * Moves the path to its place.
 */
export const keyFromBaseAddress: RequestHandler = (request, _response, next) => {
  const [, own, path, query] = APPENDED.exec(request.url) ?? [];
  if (own !== undefined) request.url = `/${path}?${own}${query ? `&${query}` : ""}`;
  next();
};
