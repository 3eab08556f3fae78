/** Runs one tokenizer in a worker thread. */
import { Worker } from "node:worker_threads";
import { EngineError } from "./errors.js";
import type { TokenizerDefinition } from "./tokenizer-files.js";

interface Call {
  resolve(ids: Int32Array): void;
  reject(error: EngineError): void;
}

export class TokenizerThread {
  /** Resolves once the thread can encode; rejects with EngineError TOKENIZER if the document is invalid. */
  readonly ready: Promise<unknown>;
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  readonly #outbox: { call: number; text: string }[] = [];
  #lastCall = 0;
  #failure: EngineError | null = null;

  /** @param document input of @huggingface/tokenizers */
  constructor(document: TokenizerDefinition["document"]) {
    this.#worker = new Worker(new URL("./tokenizer-worker.js", import.meta.url), {
      workerData: document,
      execArgv: [],
    });
    this.#worker.on("message", (answers: { call: number; ids: Int32Array }[]) => {
      for (const { call, ids } of answers) {
        this.#calls.get(call)?.resolve(ids);
        this.#calls.delete(call);
      }
      if (this.#calls.size === 0) this.#worker.unref();
    });
    this.#worker.on("error", (cause) => this.#fail(`The tokenizer failed: ${cause.message}`, cause));
    this.#worker.on("exit", () => this.#fail("The tokenizer is closed."));
    this.ready = this.#answerTo(0);
  }

  /** @throws EngineError TOKENIZER if the thread has ended */
  encode(text: string): Promise<Int32Array> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const call = ++this.#lastCall;
    // Keeps the process alive while calls are pending.
    this.#worker.ref();
    // Sends all texts of the current tick in one message, because sending a message takes longer than
    // encoding most texts.
    if (this.#outbox.push({ call, text }) === 1) {
      queueMicrotask(() => this.#worker.postMessage(this.#outbox.splice(0)));
    }
    return this.#answerTo(call);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #answerTo(call: number): Promise<Int32Array> {
    return new Promise((resolve, reject) => this.#calls.set(call, { resolve, reject }));
  }

  #fail(message: string, cause?: Error): void {
    this.#failure ??= new EngineError("TOKENIZER", message, { cause });
    for (const { reject } of this.#calls.values()) reject(this.#failure);
    this.#calls.clear();
  }
}
