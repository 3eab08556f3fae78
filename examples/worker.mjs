/**
 * Runs the whole service in a worker thread, so that the application's event loop stays free.
 *
 * node examples/worker.mjs [port]
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { createEngine, createMusicServer, loadConfig } from "carillon";

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port: process.argv[2] ?? "8001" } });
  const [url] = await once(worker, "message");
  console.log(`music on ${url}`);
  await once(process, "SIGTERM");
  worker.postMessage("close");
  const [code] = await once(worker, "exit");
  console.log(`the worker thread exited with code ${code}`);
} else {
  const config = loadConfig({ ...process.env, SVC_API_PORT: workerData.port });
  const engine = createEngine(config);
  const server = await createMusicServer({ config, engine });
  parentPort.postMessage(server.url);
  await once(parentPort, "message");
  await server.close();
  await engine.close();
  parentPort.close();
}
