/**
 * Encodes texts in a worker thread, since texts of a few thousand characters can take hundreds of milliseconds.
 * JavaScript, because worker threads start from the file itself, compiled or not.
 */
import { parentPort, workerData } from "node:worker_threads";
import { Tokenizer } from "@huggingface/tokenizers";

const tokenizer = new Tokenizer(workerData, {});

// Call 0 reports that the tokenizer loaded.
parentPort?.postMessage([{ call: 0, ids: new Int32Array(0) }]);

parentPort?.on("message", (/** @type {{ call: number, text: string }[]} */ calls) => {
  const encode = (/** @type {string} */ text) =>
    Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
  parentPort?.postMessage(calls.map(({ call, text }) => ({ call, ids: encode(text) })));
});
