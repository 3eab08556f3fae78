/** Builds dist/ from src/. */
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { installPackages } from "./packages.mjs";
import { projectRoot, run, say } from "./run.mjs";
import { fingerprint, isStepDone, markStepDone } from "./stamp.mjs";

/** Page files that are copied unchanged. The scripts of the pages are bundled. */
const PAGE_FILES = [
  "index.html",
  "icon.svg",
  "studio/icon.svg",
  "studio/languages",
  "studio/help",
  "studio/songs",
];
const STYLES = ["src/web/page.css", "src/web/studio/styles.css"];
/** Files of Swagger UI, with its licence and the licences of the libraries bundled in its script. */
const DOCS_FILES = [
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "swagger-ui.css",
  "LICENSE",
  "NOTICE",
];

export function buildTypeScript() {
  const print = fingerprint(["src", "tsconfig.json", "tsconfig.build.json", "package-lock.json"]);
  const pages = ["dist/web/index.html", "dist/web/studio/main.js"];
  if (isStepDone("typescript", print) && pages.every(isThere)) return;
  if (!["node_modules/typescript", "node_modules/preact"].every(isThere)) installPackages();
  say("compiling TypeScript");
  rmSync(join(projectRoot, "dist"), { recursive: true, force: true });
  const tsc = join(projectRoot, "node_modules/typescript/bin/tsc");
  run(process.execPath, [tsc, "-p", "tsconfig.build.json"]);
  // npx runs this file. npm makes it executable only when it first links the clone.
  chmodSync(join(projectRoot, "dist/cli/main.js"), 0o755);
  bundle("src/web", "main.ts");
  for (const page of ["main", "listen"]) preloadImports(page, bundle("src/web/studio", `${page}.tsx`));
  esbuild({ entryPoints: STYLES, bundle: true, outbase: "src/web", outdir: "dist/web" });
  copyDocs();
  for (const file of PAGE_FILES)
    cpSync(join(projectRoot, "src/web", file), join(projectRoot, "dist/web", file), { recursive: true });
  compressFiles(join(projectRoot, "dist/web"));
  markStepDone("typescript", print);
}

function isThere(path) {
  return existsSync(join(projectRoot, path));
}

/** Copies the page of the API documentation, and the files of Swagger UI beside it. */
function copyDocs() {
  const docs = join(projectRoot, "dist/web/docs");
  cpSync(join(projectRoot, "src/web/docs"), docs, { recursive: true });
  cpSync(join(projectRoot, "src/web/studio/icon.svg"), join(docs, "icon.svg"));
  for (const file of DOCS_FILES)
    cpSync(join(projectRoot, "node_modules/swagger-ui-dist", file), join(docs, file));
}

/**
 * Bundles the script of a page with its libraries, so that it loads nothing from other hosts and no chain of modules.
 * Modules that it imports dynamically become scripts of their own. Pages share no scripts: shared ones would make more
 * requests.
 * @returns paths in dist/ of the scripts that it imports
 */
function bundle(folder, script) {
  const outdir = folder.replace("src", "dist");
  const { metafile } = esbuild({
    entryPoints: [`${folder}/${script}`],
    outdir,
    splitting: true,
    tsconfig: `${folder}/tsconfig.json`,
    bundle: true,
    format: "esm",
    target: "es2023",
    metafile: true,
  });
  const { imports } = metafile.outputs[`${outdir}/${script.replace(/\.tsx?$/, ".js")}`];
  return imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => path);
}

function esbuild(options) {
  const { buildSync } = createRequire(import.meta.url)("esbuild");
  return buildSync({ absWorkingDir: projectRoot, minify: true, logLevel: "warning", ...options });
}

/** Writes compressed copies of the text files of the pages beside them. */
function compressFiles(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!/\.(js|css|json|svg)$/.test(name)) continue;
    const text = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text, { level: 9 }));
  }
}

/** Lists the scripts that a page's script imports in the page, so that browsers request them together with it. */
function preloadImports(page, paths) {
  const name = page === "main" ? "index.html" : `${page}.html`;
  const links = paths.map(
    (path) => `    <link rel="modulepreload" href="${path.replace("dist/web", "")}">\n`,
  );
  const html = readFileSync(join(projectRoot, "src/web/studio", name), "utf8");
  writeFileSync(
    join(projectRoot, "dist/web/studio", name),
    html.replace("  </head>", `${links.join("")}  </head>`),
  );
}

// Entry point of npm run build.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) buildTypeScript();
