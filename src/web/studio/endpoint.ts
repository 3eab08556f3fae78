/** Responses of GET endpoints, shared by all components that show them. */
import { CarillonError } from "../../client/index.js";
import { carillon } from "./api.js";
import { connection, watchChanges } from "./live.js";
import { Store, useStore } from "./store.js";

class Endpoint {
  /** Null before the first response. If a request fails, the last response stays. */
  readonly answer = new Store<unknown>(null);
  #reading: Promise<void> | null = null;
  #isStale = false;

  constructor(private readonly path: string) {
    void this.read();
    watchChanges(() => void this.read());
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
      } catch (error) {
        // An endpoint that this server does not have stays null. Others are requested again after a reconnect.
        this.#isStale = !(error instanceof CarillonError && error.status < 500);
        return;
      }
    }
  }
}

const endpoints = new Map<string, Endpoint>();

/**
 * Returns the response of GET `path` (null until there is one) and a function that repeats the request.
 * `notifyTabs` also repeats the request.
 */
export function useEndpoint<T>(path: string): [T | null, () => Promise<void>] {
  const endpoint = endpoints.get(path) ?? new Endpoint(path);
  endpoints.set(path, endpoint);
  return [useStore(endpoint.answer) as T | null, () => endpoint.read()];
}
