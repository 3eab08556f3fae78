import { mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { discoverSamples } from "../../../src/music/dataset/sample-set.js";
import { RequestError } from "../../../src/music/errors.js";
import { temporaryDirectory } from "../tasks.js";

describe("which samples a data set folder contains", () => {
  let root: string;
  let tensors: string;

  beforeEach(async () => {
    root = await realpath(temporaryDirectory());
    tensors = join(root, "sets", "one");
    await mkdir(tensors, { recursive: true });
    await write("sets/one/b.pt", "sets/one/a.pt", "sets/elsewhere.pt");
  });

  async function write(...paths: string[]): Promise<void> {
    for (const path of paths) await writeFile(join(root, path), "tensors");
  }
  const writeManifest = (manifest: unknown) =>
    writeFile(join(tensors, "manifest.json"), JSON.stringify(manifest));

  it("without a manifest, finds all sample files in the order of their names", async () => {
    await write("sets/one/c.tmp.pt", "sets/one/training_state.pt", "sets/one/notes.txt");
    await mkdir(join(tensors, "folder.pt"));
    expect(await discoverSamples(tensors, root)).to.deep.equal({
      metadata: null,
      samples: [join(tensors, "a.pt"), join(tensors, "b.pt")],
      skipped: [],
    });
  });

  it("finds .safetensors and .pt files; a sample in both formats counts once", async () => {
    await write(
      ...["sets/one/a.safetensors", "sets/one/c.safetensors"],
      ...["sets/one/training_state.safetensors", "sets/one/d.tmp.safetensors"],
    );
    expect((await discoverSamples(tensors, root)).samples).to.deep.equal([
      join(tensors, "a.pt"),
      join(tensors, "b.pt"),
      join(tensors, "c.safetensors"),
    ]);
    await writeManifest({ samples: ["c.safetensors", "a.safetensors"] });
    expect((await discoverSamples(tensors, root)).samples).to.deep.equal([
      join(tensors, "c.safetensors"),
      join(tensors, "a.safetensors"),
    ]);
  });

  it("samples have the manifest's order; files of a moved set are found by their names", async () => {
    await write("sets/one/c.pt");
    await writeManifest({
      metadata: { name: "set" },
      samples: ["b.pt", "sets\\elsewhere.pt", "/gone/with/the/old/machine/a.pt", "C:\\old machine\\c.pt"],
      num_samples: 4,
    });
    expect(await discoverSamples(tensors, root)).to.deep.equal({
      metadata: { name: "set" },
      samples: [
        join(tensors, "b.pt"),
        join(root, "sets/elsewhere.pt"),
        join(tensors, "a.pt"),
        join(tensors, "c.pt"),
      ],
      skipped: [],
    });
  });

  it("a sample counts once even if the manifest repeats it", async () => {
    await writeManifest({ samples: ["a.pt", "./a.pt", join(tensors, "a.pt")] });
    expect((await discoverSamples(tensors, root)).samples).to.deep.equal([join(tensors, "a.pt")]);
  });

  it("skips entries that are missing, are not samples, or lie outside the training root", async () => {
    const outside = await realpath(temporaryDirectory());
    await writeFile(join(outside, "secret.pt"), "tensors");
    await symlink(join(outside, "secret.pt"), join(tensors, "link.pt"));
    const entries = ["absent.pt", join(outside, "secret.pt"), "link.pt", "manifest.json", 7];
    await writeManifest({ samples: [...entries, "a.pt"] });
    const found = await discoverSamples(tensors, root);
    expect(found.samples).to.deep.equal([join(tensors, "a.pt")]);
    expect(found.skipped).to.deep.equal(entries.map(String));
  });

  it("rejects an invalid manifest", async () => {
    for (const text of ["{", "[]", '{"samples": "a.pt"}']) {
      await writeFile(join(tensors, "manifest.json"), text);
      const failure = await discoverSamples(tensors, root).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(RequestError).with.property("detail").that.contains("manifest.json");
    }
  });
});
