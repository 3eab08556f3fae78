import { createServer } from "node:http";
import { expect } from "chai";
import express from "express";
import { loadConfig } from "../../src/index.js";
import { answerErrors, detailFilter, HttpError, openAiError, setErrorBody } from "../../src/music/errors.js";
import { listenLocally } from "../local-server.js";

describe("error messages of a server with a key", () => {
  const shown = detailFilter(loadConfig({ SVC_API_KEY: "key", SVC_TMPDIR: "/data/t+m", SVC_HOME: "/data" }));

  it("messages name a setting instead of its directory; paths that only begin alike are unchanged", () => {
    const names: [message: string, shown: string][] = [
      ["/data/t+m/songs/1.wav: gone", "SVC_TMPDIR/songs/1.wav: gone"],
      ["cannot write to /data/t+m. Free some space.", "cannot write to SVC_TMPDIR. Free some space."],
      ["/data/t+m: full", "SVC_TMPDIR: full"],
      ["/data/t+models and /data/t+m.old", "SVC_HOME/t+models and SVC_HOME/t+m.old"],
      ["/database is missing", "/database is missing"],
    ];
    for (const [message, expected] of names) expect(shown(message)).to.equal(expected);
  });
});

describe("error types for OpenAI clients", () => {
  it("an error in the format of OpenAI has the type that belongs to its status", async () => {
    const app = express();
    app.get("/:status", ({ params: { status } }, response) => {
      setErrorBody(response, openAiError);
      throw new HttpError(Number(status), "refused");
    });
    app.use(answerErrors(() => undefined));
    const server = createServer(app);
    const { url } = await listenLocally(server);
    const types = {
      400: "invalid_request_error",
      401: "authentication_error",
      429: "rate_limit_error",
      500: "server_error",
      503: "server_error",
    };
    try {
      for (const [status, type] of Object.entries(types)) {
        const { error } = (await (await fetch(`${url}/${status}`)).json()) as {
          error: object;
        };
        expect(error).to.deep.equal({ message: "refused", type, param: null, code: Number(status) });
      }
    } finally {
      server.close();
    }
  });
});
