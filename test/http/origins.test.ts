/** Tests the recognition of loopback host names, which mark an origin as local. */
import { expect } from "chai";
import { isLoopbackName, isLoopbackOrigin } from "../../src/http/origins.js";

describe("recognition of local origins", () => {
  it("a host is local only if its name is a loopback name", () => {
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

  it("an origin is local with http or https, a loopback name and any port", () => {
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
