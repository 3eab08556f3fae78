/** Tests the recognition of loopback host names, which mark an origin as local. */
import { expect } from "chai";
import { isLoopbackName, isLoopbackOrigin } from "../../src/http/origins.js";

describe("origins", () => {
  it("accept every loopback name and no other", () => {
    for (const name of [
      "localhost",
      "LocalHost",
      "127.0.0.1",
      "127.10.20.30",
      "127.255.255.254",
      "::1",
      "[::1]",
    ])
      expect(isLoopbackName(name), name).to.equal(true);
    for (const name of [
      "128.0.0.1",
      "127.0.1",
      "127.0.0.1.example.com",
      "a127.0.0.1",
      "localhost.",
      "::2",
      "",
    ])
      expect(isLoopbackName(name), name).to.equal(false);
  });

  it("count as local with http or https and any port", () => {
    for (const origin of ["http://localhost", "https://127.0.0.1:8001", "http://[::1]:3000"])
      expect(isLoopbackOrigin(origin), origin).to.equal(true);
    for (const origin of [
      "null",
      "ftp://localhost",
      "http://localhost.example.com",
      "http://127.0.0.1@example.com",
    ])
      expect(isLoopbackOrigin(origin), origin).to.equal(false);
  });
});
