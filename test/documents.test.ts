import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8", maxBuffer: 1e8 })
  .split("\0")
  .filter((file) => /\.(md|ts|js|mjs|cjs|py|cpp|h|cu|cmake|txt|html|css|yml|json|sh)$/.test(file));
/** Cited documents that are not in the repository: scripts generate two, and a package contains one. */
const ELSEWHERE = new Set(["table.md", "tasks.md", "FluidR3Mono_License.md"]);

function exists(path: string): boolean {
  return existsSync(join(root, path));
}

/** Returns `file: document` for each document that the file mentions but that does not exist. */
function dangling(file: string, pattern: RegExp, find: (target: string) => string[]): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(pattern)]
    .map(([, target]) => target as string)
    .filter((target) => !ELSEWHERE.has(target) && !find(target).some(exists))
    .map((target) => `${file}: ${target}`);
}

describe("references between documents", () => {
  it("documents link only to existing files", () => {
    const links = /\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g;
    const documents = files.filter((file) => file.endsWith(".md"));
    expect(
      documents.flatMap((file) => dangling(file, links, (link) => [join(dirname(file), link)])),
    ).to.deep.equal([]);
  });

  it("source files mention only documents that exist", () => {
    const citations = /(?<![\w./:{}[-])((?:\.{1,2}\/)*[\w./-]*\w\.md)\b/g;
    const sources = files.filter((file) => file !== "test/documents.test.ts");
    const places = (file: string) => (name: string) => [join(dirname(file), name), name];
    expect(sources.flatMap((file) => dangling(file, citations, places(file)))).to.deep.equal([]);
  });

  it("every README is linked, directly or indirectly, from the front page", () => {
    const reached = new Set(["README.md"]);
    for (const file of reached) {
      const text = readFileSync(join(root, file), "utf8");
      for (const [, link] of text.matchAll(/\]\(([^)#\s]+\.md)[^)]*\)/g)) {
        if (!/^https?:/.test(link as string)) reached.add(join(dirname(file), link as string));
      }
    }
    const readmes = files.filter((file) => file.endsWith("README.md") && !/(^|\/)test\//.test(file));
    expect(readmes.filter((readme) => !reached.has(readme))).to.deep.equal([]);
  });

  it("the front page has at most 8 KiB, a few minutes of reading", () => {
    expect(readFileSync(join(root, "README.md")).byteLength).to.be.at.most(8 * 1024);
  });
});
