import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { PermittedRoot, UnsafePathError } from "../../../src/music/storage/permitted-root.js";
import { temporaryDirectory } from "../tasks.js";

describe("resolving a path inside the permitted root", () => {
  let outside: string;
  let root: string;
  let permitted: PermittedRoot;

  beforeEach(() => {
    const parent = realpathSync(temporaryDirectory());
    outside = join(parent, "root-of-another");
    root = join(parent, "root");
    for (const directory of [outside, root, join(root, "sets")]) mkdirSync(directory);
    writeFileSync(join(root, "file"), "");
    permitted = new PermittedRoot(root);
  });

  it("permits the root, and existing and new paths inside it", async () => {
    expect(await permitted.resolve(".")).to.equal(root);
    expect(await permitted.resolve(root)).to.equal(root);
    expect(await permitted.resolve("./sets")).to.equal(join(root, "sets"));
    expect(await permitted.resolve(join(root, "sets/a.pt"))).to.equal(join(root, "sets/a.pt"));
    expect(await permitted.resolve("new/deep/folder")).to.equal(join(root, "new/deep/folder"));
    expect(await permitted.resolve("sets/../new")).to.equal(join(root, "new"));
    expect(await permitted.resolve("file/below-a-file")).to.equal(join(root, "file/below-a-file"));
    expect(await permitted.resolve("..name-with-dots")).to.equal(join(root, "..name-with-dots"));
  });

  it("follows links that stay inside, including a root that is a link", async () => {
    symlinkSync(join(root, "sets"), join(root, "link"));
    expect(await permitted.resolve("link/new")).to.equal(join(root, "sets/new"));
    symlinkSync(root, join(outside, "root"));
    const linked = new PermittedRoot(join(outside, "root"));
    expect(await linked.resolve("sets")).to.equal(join(root, "sets"));
    expect(await linked.resolve(join(outside, "root/sets"))).to.equal(join(root, "sets"));
  });

  it("makes the root again if it was deleted", async () => {
    expect(await new PermittedRoot(join(root, "absent")).resolve("x")).to.equal(join(root, "absent/x"));
  });

  it("names SVC_TRAINING_ROOT if the root cannot be made", async () => {
    const failure = await new PermittedRoot(join(root, "file/absent"))
      .resolve("x")
      .catch((error: unknown) => error);
    expect(failure).to.have.property("status", 500);
    expect(failure).to.have.property("detail").that.includes("SVC_TRAINING_ROOT");
  });

  const escapes: [how: string, path: (outside: string) => string][] = [
    ["..", () => ".."],
    ["a path up and down again", () => "sets/../../root-of-another"],
    ["an absolute path", (outside) => outside],
    ["an absolute path that does not exist", (outside) => join(outside, "new/folder")],
    ["a link", () => "escape"],
    ["a path through a link, which does not exist", () => "escape/new/folder"],
    ["a dangling link", () => "dangling"],
    ["a folder below a dangling link", () => "dangling/folder"],
    ["a link to itself", () => "loop"],
    ["a NUL byte", () => "sets\0"],
    ["a name too long for any file system", () => "x".repeat(5000)],
  ];
  for (const [how, path] of escapes) {
    it(`rejects ${how} as a path`, async () => {
      symlinkSync(outside, join(root, "escape"));
      symlinkSync(join(outside, "absent"), join(root, "dangling"));
      symlinkSync(join(root, "loop"), join(root, "loop"));
      const failure = await permitted.resolve(path(outside)).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(UnsafePathError).with.property("status", 400);
    });
  }
});
