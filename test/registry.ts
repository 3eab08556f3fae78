/** A package registry on this machine, in a separate thread so that it responds while a test waits for npm. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

const SERVER = `
  const { createHash } = require("node:crypto");
  const { createReadStream, readFileSync } = require("node:fs");
  const { createServer } = require("node:http");
  const { parentPort, workerData } = require("node:worker_threads");
  const server = createServer((request, response) => {
    if (!request.url.startsWith(workerData.path)) return response.writeHead(404).end("{}");
    const name = decodeURIComponent(request.url.slice(workerData.path.length)).replace(/[.]tgz$/, "");
    const found = workerData.packages.find(({ manifest }) => manifest.name === name);
    if (found === undefined) return response.writeHead(404).end("{}");
    if (request.url.endsWith(".tgz")) return createReadStream(found.tarball).pipe(response);
    const { version } = found.manifest;
    const integrity = "sha512-" + createHash("sha512").update(readFileSync(found.tarball)).digest("base64");
    const tarball = "http://" + request.headers.host + workerData.path + name + ".tgz";
    const versions = { [version]: { ...found.manifest, dist: { tarball, integrity } } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

export interface Published {
  /** A folder with a package.json. */
  folder: string;
  tarball: string;
}

/** Serves packages until the test process exits or `close` is called. @returns its address, with a trailing slash */
export async function startRegistry(packages: readonly Published[]) {
  // npm's cache outlives this registry, and a later registry may get the same port with other packages.
  const path = `/${randomUUID()}/`;
  const published = packages.map(({ folder, tarball }) => ({
    manifest: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
    tarball,
  }));
  const worker = new Worker(SERVER, { eval: true, workerData: { path, packages: published } });
  worker.unref();
  const port = await new Promise<number>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  return { url: `http://127.0.0.1:${port}${path}`, close: () => worker.terminate() };
}
