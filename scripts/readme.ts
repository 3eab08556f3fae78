/**
 * npm run readme: writes the generated tables of settings and parameters into their documents.
 * With --check: writes nothing, and exits with 1 if a table is out of date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { globalRegistry, type z } from "zod";
import { renderConfigTable } from "../src/config.js";
import { generationSchema } from "../src/music/request/schema.js";
import { namesOf } from "../src/parameters.js";

const TABLES = [
  { file: "src/SETTINGS.md", name: "settings", render: renderConfigTable },
  {
    file: "src/music/request/PARAMETERS.md",
    name: "generation",
    render: () => parameterTable(generationSchema.shape),
  },
];

function parameterTable(parameters: Record<string, z.ZodType>): string {
  const rows = Object.values(parameters).map((type) => {
    const [name, ...others] = namesOf(type).map((text) => `\`${text}\``);
    const fallback = type.safeParse(undefined);
    const { description = "" } = globalRegistry.get(type) ?? {};
    const value = fallback.success ? shown(fallback.data) : "required";
    return `| ${name} | ${value} | ${description} | ${others.join(" ")} |`;
  });
  return ["| Parameter | Default | Meaning | Other names |", "|---|---|---|---|", ...rows].join("\n");
}

function shown(value: unknown): string {
  if (value === null || value === "") return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

for (const { file, name, render } of TABLES) {
  const url = new URL(`../${file}`, import.meta.url);
  const before = readFileSync(url, "utf8");
  const marks = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
  const after = before.replace(marks, (_, open: string, close: string) => `${open}${render()}\n${close}`);
  if (!process.argv.includes("--check")) {
    writeFileSync(url, after);
  } else if (after !== before) {
    process.stderr.write(`${file} is not up to date: run npm run readme\n`);
    process.exitCode = 1;
  }
}
