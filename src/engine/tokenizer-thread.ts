/** The thread that encodes the texts of one tokenizer. */
import { Worker } from "node:worker_threads";
import { EngineError } from "./errors.js";
import type { TokenizerDefinition } from "./tokenizer-files.js";

interface Call {
  resolve(ids: Int32Array): void;
  reject(error: EngineError): void;
}

export class TokenizerThread {
  /** Rejects with EngineError TOKENIZER where the document is no tokenizer's. */
  readonly ready: Promise<unknown>;
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  #lastCall = 0;
  #failure: EngineError | null = null;

  /** @param document what @huggingface/tokenizers takes */
  constructor(document: TokenizerDefinition["document"]) {
    this.#worker = new Worker(new URL("./tokenizer-worker.js", import.meta.url), {
      workerData: document,
      execArgv: [],
    });
    this.#worker.on("message", ({ call, ids }: { call: number; ids: Int32Array }) => {
      this.#calls.get(call)?.resolve(ids);
      this.#ended(call);
    });
    this.#worker.on("error", (cause) => this.#fail(`The tokenizer failed: ${cause.message}`, cause));
    this.#worker.on("exit", () => this.#fail("The tokenizer is closed."));
    this.ready = this.#answerTo(0);
  }

  /** @throws EngineError TOKENIZER where the thread has ended */
  encode(text: string): Promise<Int32Array> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const call = ++this.#lastCall;
    // The process stays for as long as something is awaited.
    this.#worker.ref();
    const answer = this.#answerTo(call);
    this.#worker.postMessage({ call, text });
    return answer;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #answerTo(call: number): Promise<Int32Array> {
    return new Promise((resolve, reject) => this.#calls.set(call, { resolve, reject }));
  }

  #ended(call: number): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#worker.unref();
  }

  #fail(message: string, cause?: Error): void {
    this.#failure ??= new EngineError("TOKENIZER", message, { cause });
    for (const { reject } of this.#calls.values()) reject(this.#failure);
    this.#calls.clear();
  }
}
