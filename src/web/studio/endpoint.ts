/** Responses of GET endpoints, shared by all components that show them. */
import { CarillonError } from "../../client/index.js";
import { carillon } from "./api.js";
import { connection, watchChanges, watchReconnects } from "./live.js";
import { BackOff } from "./reading.js";
import { Store, useStore } from "./store.js";

class Endpoint {
  /** Null before the first response. If a request fails, the last response stays. */
  readonly answer = new Store<unknown>(null);
  readonly #retries = new BackOff();
  #reading: Promise<void> | null = null;
  #isStale = false;
  #isRetrying = false;

  constructor(private readonly path: string) {
    void this.read();
    watchChanges(() => void this.read());
    watchReconnects(() => void this.read());
    connection.subscribe((state) => {
      if (state === "online" && this.#isStale) void this.read();
    });
  }

  /** Requests again, after the request in progress. */
  read(): Promise<void> {
    this.#isStale = true;
    this.#reading ??= this.#readUntilFresh().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readUntilFresh(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        this.answer.set(await carillon.call("GET", this.path));
        this.#retries.reset();
      } catch (error) {
        // An endpoint that this server does not have stays null. Others are requested again after a reconnect.
        this.#isStale = !(error instanceof CarillonError && error.status < 500);
        // After a restart the server may need a moment. The response from before must not stay.
        if (this.#isStale && error instanceof CarillonError && this.answer.value !== null) void this.#retry();
        return;
      }
    }
  }

  async #retry(): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    await this.#retries.wait();
    this.#isRetrying = false;
    if (this.#isStale) void this.read();
  }
}

const endpoints = new Map<string, Endpoint>();

function endpointAt(path: string): Endpoint {
  const endpoint = endpoints.get(path) ?? new Endpoint(path);
  endpoints.set(path, endpoint);
  return endpoint;
}

/** Repeats the request. @returns the last response; null if there was none */
export async function reread<T>(path: string): Promise<T | null> {
  const endpoint = endpointAt(path);
  await endpoint.read();
  return endpoint.answer.value as T | null;
}

/**
 * Returns the response of GET `path` (null until there is one) and a function that repeats the request.
 * `notifyTabs` also repeats the request.
 */
export function useEndpoint<T>(path: string): [T | null, () => Promise<void>] {
  const endpoint = endpointAt(path);
  return [useStore(endpoint.answer) as T | null, () => endpoint.read()];
}
