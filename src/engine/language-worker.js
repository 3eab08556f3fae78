/** Detects the language of texts; null if unsure. JavaScript for the same reason as `tokenizer-worker.js`. */
import { parentPort } from "node:worker_threads";
import { eld } from "eld/small";

parentPort?.on("message", (/** @type {string} */ text) => {
  const found = eld.detect(text);
  parentPort?.postMessage(found.isReliable() ? found.language : null);
});
