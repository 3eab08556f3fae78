/**
 * Encodes texts in a thread of its own: some of a few thousand characters take hundreds of milliseconds. In JavaScript,
 * as a thread starts from the file itself, whether or not the rest is compiled.
 */
import { parentPort, workerData } from "node:worker_threads";
import { Tokenizer } from "@huggingface/tokenizers";

const tokenizer = new Tokenizer(workerData, {});

// The first answer, to no call: the tokenizer is one.
parentPort?.postMessage([{ call: 0, ids: new Int32Array(0) }]);

parentPort?.on("message", (/** @type {{ call: number, text: string }[]} */ calls) => {
  const encode = (/** @type {string} */ text) =>
    Int32Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
  parentPort?.postMessage(calls.map(({ call, text }) => ({ call, ids: encode(text) })));
});
