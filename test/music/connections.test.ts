import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect } from "chai";
import { ConfigError } from "../../src/config.js";
import { type ConnectionLimits, connectionLimits, limitConnections } from "../../src/music/connections.js";
import { type LiveServer, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

describe("connections", () => {
  let server: Server;
  const sockets: Socket[] = [];

  /** Starts the server. Gives what answers the requests for /slow that it has got. */
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

  /** Resolves with all that the server sent, once it has closed the connection. */
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

  it("that stand idle make room for a request, however many there are", async () => {
    await start({ total: 8, perAddress: 4 });
    const idle = Array.from({ length: 40 }, () => open("GET /hea"));
    await Promise.all(idle.slice(0, 36).map(({ reply }) => reply));
    expect(await open(request("/")).reply).to.match(/^HTTP\/1.1 200 /);
    expect(await connections()).to.be.at.most(4);
  });

  it("of one address leave room for others", async () => {
    await start({ total: 8, perAddress: 4 });
    for (let i = 0; i < 10; i++) open();
    const friend = open("", "127.0.0.2");
    await once(friend.socket, "connect");
    for (let i = 0; i < 10; i++) open();
    await open(request("/")).reply;
    friend.socket.write(request("/"));
    expect(await friend.reply).to.match(/^HTTP\/1.1 200 /);
  });

  it("at work are never cut: one too many is told so", async () => {
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

  it("are fewer than the system's descriptors", () => {
    expect(connectionLimits(1024)).to.deep.equal({ total: 384, perAddress: 192 });
    expect(connectionLimits(100)).to.deep.equal({ total: 16, perAddress: 8 });
    expect(connectionLimits(Number.POSITIVE_INFINITY)).to.deep.equal({ total: 1024, perAddress: 512 });
    expect(connectionLimits().total).to.be.within(16, 1024);
  });
});

describe("a server of this machine alone", () => {
  let server: LiveServer;
  before(async () => {
    server = await startLiveServer(temporaryDirectory());
  });
  after(() => server.close());

  /** The status of a request that is sent as it stands. */
  async function statusOf(target: string, host: string): Promise<number> {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    let reply = "";
    socket.on("data", (chunk) => {
      reply += chunk;
    });
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    await once(socket, "close");
    expect(reply).to.match(/Content-Type: application\/json/);
    return Number(reply.split(" ")[1]);
  }

  it("answers to names of this machine alone, in the header or in the target", async () => {
    expect(await statusOf("/health", "localhost")).to.equal(200);
    expect(await statusOf("/health", "rebound.example")).to.equal(403);
    expect(await statusOf("http://localhost/health", "rebound.example")).to.equal(200);
    expect(await statusOf("http://rebound.example/health", "localhost")).to.equal(403);
  });

  it("answers 400 to a target that is no URL", async () => {
    for (const target of ["http://[", "http://[::1", "http://a:b/"]) {
      expect(await statusOf(target, "localhost"), target).to.equal(400);
    }
  });
});

describe("a server that other machines reach", () => {
  it("does not start without a key unless told to", async () => {
    const failure = await startLiveServer(temporaryDirectory(), { SVC_API_HOST: "0.0.0.0" }).catch((e) => e);
    expect(failure).to.be.instanceOf(ConfigError);
    expect(failure.message).to.match(/^SVC_API_KEY is empty.*SVC_ALLOW_NO_KEY=true$/);
    for (const settings of [{ SVC_API_KEY: "k1" }, { SVC_ALLOW_NO_KEY: "true" }]) {
      const server = await startLiveServer(temporaryDirectory(), { SVC_API_HOST: "0.0.0.0", ...settings });
      const answer = await fetch(`http://127.0.0.1:${new URL(server.url).port}/health`);
      await server.close();
      expect(answer.status).to.equal(200);
    }
  });
});
