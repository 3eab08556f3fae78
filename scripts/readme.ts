/**
 * npm run readme: writes the generated part of README.md, the configuration table.
 * With --check: exits 1 if the file is not up to date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { renderConfigTable } from "../src/config.js";

const file = new URL("../README.md", import.meta.url);
const before = readFileSync(file, "utf8");
const after = before.replace(
  /(<!-- configuration -->\n)[\s\S]*?(<!-- \/configuration -->)/,
  (_, open: string, close: string) => `${open}${renderConfigTable().trim()}\n${close}`,
);
if (!process.argv.includes("--check")) {
  writeFileSync(file, after);
} else if (after !== before) {
  process.stderr.write("README.md is not up to date: run npm run readme\n");
  process.exitCode = 1;
}
