import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { listenLocally } from "../../local-server.js";

export interface ReceivedCallback {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export class CallbackReceiver {
  readonly received: ReceivedCallback[] = [];
  /** Status of every response. Every response has the Location /elsewhere. */
  status = 200;
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<CallbackReceiver> {
    const server = createServer();
    const receiver = new CallbackReceiver(server, (await listenLocally(server)).url);
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
