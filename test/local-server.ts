/** Servers on free ports of this machine. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Starts a TCP or HTTP server on a free port. */
export async function listenLocally(server: Server): Promise<{ url: string; port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

/**
 * Range of `freePort`. Linux gives ports from 32768 on to clients and to servers without a fixed port. Below it, no
 * other process takes the port of a server while a test restarts the server.
 */
const FIRST_PORT = 20_000;
const PORT_COUNT = 12_000;

/** Finds a port on which no server listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + randomInt(PORT_COUNT);
    const server = createServer();
    const isFree = new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (await isFree) return port;
  }
}
