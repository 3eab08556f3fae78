import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import pino from "pino";
import {
  type ConnectionLimits,
  connectionLimits,
  limitConnections,
  loopbackLimits,
} from "../../src/http/connections.js";
import { listen } from "../../src/http/listener.js";

describe("limits on connections to a server", () => {
  let server: Server;
  const sockets: Socket[] = [];

  /** Starts the server. For each request to /slow, the returned list gets a function that answers the request. */
  async function start(limits: ConnectionLimits): Promise<(() => void)[]> {
    const waiting: (() => void)[] = [];
    server = createServer((request, response) => {
      if (request.url === "/slow") waiting.push(() => response.end("done"));
      else response.end("done");
    });
    limitConnections(server, limits);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return waiting;
  }

  /** Opens a connection. When the server closes it, `reply` resolves with all that the server sent. */
  function open(text = "", localAddress = "127.0.0.1"): { socket: Socket; reply: Promise<string> } {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    sockets.push(socket);
    let reply = "";
    socket
      .on("error", () => {})
      .on("data", (chunk) => {
        reply += chunk;
      });
    if (text !== "") socket.write(text);
    return { socket, reply: once(socket, "close").then(() => reply) };
  }

  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  const connections = () =>
    new Promise<number>((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  it("idle connections are closed when a new client would exceed the limit", async () => {
    await start({ total: 8, perAddress: 4 });
    const idle = Array.from({ length: 40 }, () => open("GET /hea"));
    await Promise.all(idle.slice(0, 36).map(({ reply }) => reply));
    expect(await open(request("/")).reply).to.match(/^HTTP\/1.1 200 /);
    expect(await connections()).to.be.at.most(4);
  });

  it("connections are limited per client address, so that one address cannot block others", async () => {
    await start({ total: 8, perAddress: 4 });
    for (let i = 0; i < 10; i++) open();
    const friend = open("", "127.0.0.2");
    await once(friend.socket, "connect");
    for (let i = 0; i < 10; i++) open();
    await open(request("/")).reply;
    friend.socket.write(request("/"));
    expect(await friend.reply).to.match(/^HTTP\/1.1 200 /);
  });

  it("busy connections stay open; a new connection over the limit is rejected with 503", async () => {
    const waiting = await start({ total: 8, perAddress: 4 });
    const busy = Array.from({ length: 4 }, () => open(request("/slow")));
    while (waiting.length < 4) await once(server, "request");
    const refused = await open().reply;
    expect(refused).to.match(/^HTTP\/1.1 503 /);
    expect(JSON.parse(refused.split("\r\n\r\n")[1] as string).detail).to.match(/^Too many connections/);
    for (const answer of waiting) answer();
    for (const { reply } of busy) expect(await reply).to.match(/^HTTP\/1.1 200 [\s\S]*done/);
    expect(await open(request("/")).reply).to.match(/^HTTP\/1.1 200 /);
  });

  it("the limit leaves file descriptors of the process free", () => {
    expect(connectionLimits(1024)).to.deep.equal({ total: 384, perAddress: 192 });
    expect(connectionLimits(100)).to.deep.equal({ total: 16, perAddress: 8 });
    expect(connectionLimits(Number.POSITIVE_INFINITY)).to.deep.equal({ total: 1024, perAddress: 512 });
    expect(loopbackLimits(256)).to.deep.equal({ total: 96, perAddress: 96 });
    expect(connectionLimits().total).to.be.within(16, 1024);
  });
});

describe("keep-alive time of connections", () => {
  it("the server keeps idle connections open longer than proxies do", async () => {
    const listener = await listen({ host: "127.0.0.1", port: 0 }, {}, pino({ level: "silent" }), (server) =>
      server.on("request", (_request, response) => response.end("done")),
    );
    try {
      const promised = (await fetch(listener.url)).headers.get("keep-alive");
      expect(Number(/timeout=(\d+)/.exec(promised ?? "")?.[1])).to.be.above(60);
    } finally {
      await listener.close(Promise.resolve());
    }
  });
});
