/** Servers on free ports of this machine. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Lets a server, also an HTTP server, listen on a free port. */
export async function listenLocally(server: Server): Promise<{ url: string; port: number }> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

/** A port at which no server listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = await listenLocally(server);
  server.close();
  await once(server, "close");
  return port;
}
