/** dist/ from src/. An installed package has dist/ and no src/. */
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installPackages } from "./packages.mjs";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isDone, markDone } from "./stamp.mjs";

/** Files of the page that go as they are; its scripts are a project of their own, for the browser. */
const PAGE_FILES = ["index.html", "page.css", "icon.svg"];

export function buildTypeScript() {
  if (!existsSync(join(projectRoot, "src"))) return;
  const print = fingerprint(["src", "tsconfig.json", "tsconfig.build.json", "package-lock.json"]);
  if (isDone("typescript", print) && existsSync(join(projectRoot, "dist/web/index.html"))) return;
  if (!existsSync(join(projectRoot, "node_modules/typescript"))) installPackages();
  say("compiling TypeScript");
  rmSync(join(projectRoot, "dist"), { recursive: true, force: true });
  compile("tsconfig.build.json");
  compile("src/web");
  for (const file of PAGE_FILES)
    cpSync(join(projectRoot, "src/web", file), join(projectRoot, "dist/web", file));
  markDone("typescript", print);
}

function compile(project) {
  run(process.execPath, [join(projectRoot, "node_modules/typescript/bin/tsc"), "-p", project]);
}

// npm run build enters here.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) buildTypeScript();
