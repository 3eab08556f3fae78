/** Streams the log of this process to a client: its recent lines, then each new one. */
import type { IncomingMessage } from "node:http";
import type { Response } from "express";
import { eventText, setEventStreamHeaders, startHeartbeat } from "../../http/event-stream.js";
import { followLog } from "../../system/log.js";

/** Interval of keep-alive comments, for proxies that close idle streams. */
const HEARTBEAT_MS = 5_000;

const LOOPBACK = /^(::1|(::ffff:)?127(\.\d{1,3}){3})$/;

export function isFromThisMachine({ socket }: IncomingMessage): boolean {
  return LOOPBACK.test(socket.remoteAddress ?? "");
}

/** A client that reads too slowly misses lines. */
export function streamLog(response: Response, signal: AbortSignal): void {
  setEventStreamHeaders(response);
  response.flushHeaders();
  startHeartbeat(response, ": alive\n\n", HEARTBEAT_MS);
  followLog((line) => {
    if (!response.writableNeedDrain)
      response.write(
        line
          .split("\n")
          .map((text) => eventText(text))
          .join(""),
      );
  }, signal);
}
