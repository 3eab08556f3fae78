/** Callback receiver for tests: records requests and answers with a given status. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

export interface ReceivedCallback {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export class CallbackReceiver {
  readonly received: ReceivedCallback[] = [];
  /** Status of every response. A redirect points to /elsewhere. */
  status = 200;
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<CallbackReceiver> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const receiver = new CallbackReceiver(server, `http://127.0.0.1:${port}`);
    server.on("request", async (request, response) => {
      const body = await text(request);
      receiver.received.push({ path: request.url as string, headers: request.headers, body });
      response.writeHead(receiver.status, { Location: "/elsewhere" }).end("thanks");
    });
    return receiver;
  }

  /** Resolves with the requests to a path once there are at least `count`. */
  async until(path: string, count: number): Promise<ReceivedCallback[]> {
    for (;;) {
      const own = this.received.filter((received) => received.path === path);
      if (own.length >= count) return own;
      await sleep(20);
    }
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
