import { join } from "node:path";
import { expect } from "chai";
import type { AdapterFiles, NativeAdapter, NativeRenderer } from "../../src/engine/addon.js";
import { Checkpoints } from "../../src/engine/checkpoints.js";
import { loadAddon } from "../../src/engine/native.js";
import { writeLokr, writeLora } from "../music/adapter-files.js";
import { temporaryDirectory } from "../music/tasks.js";
import { testDevice } from "./embedded.js";

describe("adapters through the addon", () => {
  const folder = temporaryDirectory();
  const renderers: NativeRenderer[] = [];

  async function loadRenderer(): Promise<NativeRenderer> {
    const { directory, vaeDirectory, textEncoderDirectory } = new Checkpoints("").renderer("carillon-nano");
    const renderer = await loadAddon().loadRenderer(
      {
        ...{ modelDirectory: directory, vaeDirectory, textEncoderDirectory },
        ...{ device: testDevice, dtype: "auto", quantization: "none", offload: false, offloadModel: false },
      },
      {},
    );
    renderers.push(renderer);
    return renderer;
  }

  async function codeOf(promise: Promise<unknown>): Promise<unknown> {
    return promise.then(
      () => "none",
      (error: { code: unknown }) => error.code,
    );
  }

  function files(path: string): AdapterFiles {
    return { path, doraEpsilon: "float32" };
  }

  after(() => Promise.all(renderers.map((renderer) => renderer.close())));

  it("are described by what their files hold", async () => {
    const renderer = await loadRenderer();
    const lora = await renderer.loadAdapter(files(writeLora(join(folder, "style"))), {});
    expect(lora.info.kind).to.equal("lora");
    expect(lora.info.moduleCount).to.be.above(0);
    expect(lora.info.unmatchedTensors).to.deep.equal([]);
    const lokr = await renderer.loadAdapter(files(writeLokr(join(folder, "kron.safetensors"))), {});
    expect(lokr.info).to.deep.equal({ ...lora.info, kind: "lokr" });
  });

  it("act on the renderer that loaded them, while it is open", async () => {
    const [first, second] = [await loadRenderer(), await loadRenderer()];
    const adapter = await first.loadAdapter(files(writeLora(join(folder, "mine"))), {});
    await first.applyAdapter(adapter, 1, {});
    expect(await codeOf(second.applyAdapter(adapter, 1, {}))).to.equal("BAD_ARGUMENT");
    expect(await codeOf(first.applyAdapter(adapter, 2, {}))).to.equal("BAD_ARGUMENT");
    const impostor = { info: adapter.info } as NativeAdapter;
    expect(() => first.applyAdapter(impostor, 1, {})).to.throw(TypeError, "NativeAdapter");
    await first.applyAdapter(null, 0, {});
    await first.close();
    expect(await codeOf(first.applyAdapter(adapter, 1, {}))).to.equal("BAD_ARGUMENT");
  });

  it("are refused as a bad checkpoint where they are damaged or of another model", async () => {
    const renderer = await loadRenderer();
    const foreign = writeLora(join(folder, "foreign"), { inputs: 48 });
    const halved = { path: foreign, doraEpsilon: "float16" } as unknown as AdapterFiles;
    expect(() => renderer.loadAdapter(halved, {})).to.throw(TypeError, "doraEpsilon must be one of float32");
    expect(await codeOf(renderer.loadAdapter(files(foreign), {}))).to.equal("BAD_CHECKPOINT");
    expect(await codeOf(renderer.loadAdapter(files(join(folder, "absent")), {}))).to.equal("BAD_CHECKPOINT");
  });
});
