/** Servers on free ports of this machine. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Starts a TCP or HTTP server on a free port. */
export async function listenLocally(server: Server): Promise<{ url: string; port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

/** Finds a port on which no server listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = await listenLocally(server);
  server.close();
  await once(server, "close");
  return port;
}
