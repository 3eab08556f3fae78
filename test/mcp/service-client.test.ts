import { createServer, type Socket } from "node:net";
import { expect } from "chai";
import { ServiceClient } from "../../src/mcp/service-client.js";
import { failureOf } from "../failures.js";
import { listenLocally } from "../local-server.js";

describe("client of a service for MCP tools", () => {
  const upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
  const answers: [how: string, serve: (socket: Socket) => void, reason: string][] = [
    ["switches protocols", (socket) => socket.write(upgrade), "101 Switching Protocols"],
    ["closes the connection", (socket) => socket.end(), "socket hang up"],
    [
      "ends within its body",
      (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
      "aborted",
    ],
  ];
  for (const [how, serve, reason] of answers) {
    it(`fails if the service ${how}`, async () => {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => serve(socket));
      });
      const client = new ServiceClient((await listenLocally(server)).url);
      expect((await failureOf(client.post("/commands/save", {}))).message).to.include(reason);
      server.close();
    });
  }

  it("stops waiting for a silent service when the caller gives up", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on("error", () => {})));
    const client = new ServiceClient((await listenLocally(server)).url);
    const caller = new AbortController();
    const failure = failureOf(client.get("/state/summary", caller.signal));
    caller.abort(new Error("enough"));
    expect((await failure).message).to.equal("enough");
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});
