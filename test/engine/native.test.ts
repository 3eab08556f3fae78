import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { EngineError } from "../../src/engine/errors.js";
import { loadAddon } from "../../src/engine/native.js";
import { thrownBy } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";

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
