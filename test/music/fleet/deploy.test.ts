/** Tests a fleet's deployment files. The tests cannot deploy, so they check only the names in the files. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { renderConfigTable } from "../../../src/config.js";

const folder = new URL("../../../src/music/fleet/deploy/", import.meta.url);

describe("settings named in a fleet's deployment files", () => {
  it("deployment files use only settings that exist", () => {
    const files = readdirSync(fileURLToPath(folder));
    const texts = files.map((name) => readFileSync(new URL(name, folder), "utf8"));
    const named = new Set(texts.join("\n").match(/\bSVC_[A-Z_]+\b/g));
    expect(named).to.include("SVC_REDIS_URL");
    const table = renderConfigTable();
    expect([...named].filter((name) => !table.includes(`\`${name}\``))).to.deep.equal([]);
  });
});
