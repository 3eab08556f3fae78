import { expect } from "chai";
import { loadConfig } from "../../src/index.js";
import { detailFor } from "../../src/music/errors.js";

describe("messages to clients of a server with a key", () => {
  const shown = detailFor(loadConfig({ SVC_API_KEY: "key", SVC_TMPDIR: "/data/t+m", SVC_HOME: "/data" }));

  it("replace each server path by the name of its setting, and leave longer paths unchanged", () => {
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
