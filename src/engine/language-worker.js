/** Tells the language of texts; null where it is not sure. In JavaScript as `tokenizer-worker.js` is. */
import { parentPort } from "node:worker_threads";
import { eld } from "eld/small";

parentPort?.on("message", (/** @type {string} */ text) => {
  const found = eld.detect(text);
  parentPort?.postMessage(found.isReliable() ? found.language : null);
});
