import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import type { NativeRenderer, RenderCall } from "../../src/engine/addon.js";
import { Checkpoints, DEFAULT_MODEL } from "../../src/engine/checkpoints.js";
import { EngineError } from "../../src/engine/errors.js";
import { loadAddon } from "../../src/engine/native.js";
import { thrownBy } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";
import { testDevice } from "./embedded.js";
import { plainJob } from "./plain-song.js";

describe("loading of the native addon", () => {
  function refusal(path: string): string {
    const before = process.env.CARILLON_ADDON;
    process.env.CARILLON_ADDON = path;
    const error = thrownBy(loadAddon);
    if (before === undefined) delete process.env.CARILLON_ADDON;
    else process.env.CARILLON_ADDON = before;
    expect(error).to.be.instanceOf(EngineError).and.include({ code: "ADDON_MISSING" });
    return error.message;
  }

  it("the error names the set-up command if the addon is missing or cannot be loaded", () => {
    const directory = temporaryDirectory();
    const damaged = join(directory, "carillon.node");
    writeFileSync(damaged, "not a library");
    expect(refusal(join(directory, "absent.node")))
      .to.contain("does not exist")
      .and.contain("npm run setup");
    expect(refusal(damaged)).to.contain("cannot be loaded").and.contain("npm run setup");
  });

  it("the addon lists the devices", () => {
    const { devices, libtorchVersion } = loadAddon().runtimeInfo();
    expect(devices[0]).to.include({ name: "cpu" });
    expect(libtorchVersion).to.match(/^2\.\d+/);
  });
});

describe("entries of the native addon", () => {
  it("junk arguments give errors with a code, and the process goes on", async () => {
    const program = fileURLToPath(new URL("junk-program.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, ["--import=tsx/esm", program]);
    const { calls, faults } = JSON.parse(stdout);
    expect(faults).to.deep.equal([]);
    expect(calls).to.be.above(10_000);
  });

  describe("callbacks", () => {
    let renderer: NativeRenderer;

    before(async () => {
      const checkpoints = new Checkpoints("absent");
      const { model, vae, textEncoder } = checkpoints.renderer(checkpoints.configured(DEFAULT_MODEL));
      renderer = await loadAddon().loadRenderer(
        {
          ...{ model, vae, textEncoder },
          ...{ device: testDevice, dtype: "auto", quantization: "none", offload: false, offloadModel: false },
        },
        {},
      );
    });
    after(() => renderer.close());

    for (const name of ["onProgress", "onEvent"] as const) {
      it(`an exception of ${name} cancels the call and rejects it`, async () => {
        const failure = new Error("the listener failed");
        let calls = 0;
        const call: RenderCall = {
          [name]: () => {
            calls += 1;
            throw failure;
          },
        };
        const error = await renderer.render(plainJob, call).catch((reason: unknown) => reason);
        expect(error).to.equal(failure);
        expect(calls).to.equal(1);
      });
    }

    it("a signal that cannot be subscribed to is refused before the call starts", async () => {
      const broken = new AbortController().signal;
      const failure = new Error("no subscription");
      Object.defineProperty(broken, "addEventListener", {
        value: () => {
          throw failure;
        },
      });
      expect(() => renderer.render(plainJob, { signal: broken })).to.throw(failure.message);
      const half = { aborted: false, addEventListener: () => {} } as unknown as AbortSignal;
      expect(() => renderer.render(plainJob, { signal: half })).to.throw(
        "removeEventListener must be a function",
      );
    });
  });
});
