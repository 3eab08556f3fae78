import { expect } from "chai";
import pino from "pino";
import { listen } from "../../src/http/listener.js";

describe("a server", () => {
  it("keeps idle connections for longer than proxies do", async () => {
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
