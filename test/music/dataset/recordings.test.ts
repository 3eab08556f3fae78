/** Tests PUT /v1/dataset/audio/{folder}/{file}. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { serverForAll } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

describe("upload of recordings for a data set", function () {
  this.timeout(60_000);
  const root = temporaryDirectory();
  const server = serverForAll({ SVC_TRAINING_ROOT: root, SVC_API_KEY: "k1", SVC_UPLOAD_MAX_MB: "1" });

  async function put(path: string, body: Uint8Array<ArrayBuffer> | string, key = "k1") {
    const response = await fetch(`${server.url}/v1/dataset/audio/${path}`, {
      method: "PUT",
      body,
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "audio/mpeg" },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  it("uploads are stored byte for byte; a second upload replaces the first", async () => {
    const { status, body } = await put("my%20songs/a%20tune.mp3", new Uint8Array([1, 2, 3]));
    expect(status).to.equal(200);
    expect(body.data).to.deep.equal({ audio_dir: "my songs", bytes: 3 });
    await put("my%20songs/a%20tune.mp3", new Uint8Array([4, 5]));
    expect([...readFileSync(join(root, "my songs/a tune.mp3"))]).to.deep.equal([4, 5]);
  });

  it("rejects bad uploads with the reason, and leaves no file", async () => {
    const outside = temporaryDirectory();
    mkdirSync(join(root, "limits"));
    symlinkSync(outside, join(root, "link"));
    for (const [path, content, reason] of [
      ["limits/tune.exe", "x", /^file must end in one of \.flac/],
      ["limits/.hidden.mp3", "x", /^file must be a plain name/],
      ["limits/..%2Ftune.mp3", "x", /^file must be a plain name/],
      ["..%2Flimits/tune.mp3", "x", /^folder must be a plain name/],
      ["link/tune.mp3", "x", /is outside/],
      ["limits/empty.mp3", "", /^empty\.mp3 is empty/],
      ["limits/large.mp3", "x".repeat(1.5e6), /^large\.mp3 is larger than the limit/],
    ] as const) {
      const { status, body } = await put(path, content);
      expect(status, path).to.equal(400);
      expect(body.detail, path).to.match(reason);
    }
    expect(readdirSync(join(root, "limits"))).to.deep.equal([]);
    expect(readdirSync(outside)).to.deep.equal([]);
  });

  it("rejects uploads without the right API key", async () => {
    expect((await put("limits/tune.mp3", "x", "wrong")).status).to.equal(401);
    expect(readdirSync(join(root, "limits"))).to.deep.equal([]);
  });
});
