/**
 * Adapters that a request names in `loras`. They are resolved at submission, and their files are read when the
 * songs are made.
 */
import { realpath } from "node:fs/promises";
import { basename, isAbsolute } from "node:path";
import type { SongAdapter } from "../../engine/types.js";
import { findAdapter, type LoadedAdapters, taskAdapter } from "../models/loaded-adapters.js";
import type { RequestedAdapter } from "../request/loras.js";
import { type AdapterStorage, adapterSignature } from "../storage/adapter-storage.js";
import { isWithin, type PermittedRoot } from "../storage/permitted-root.js";

export class RequestedAdapters {
  /**
   * @param directory further directory of adapters (SVC_ADAPTERS); null: none
   * @param isLocal whether the service can be reached only from this machine; requests may then name any path
   * @param isShared whether other machines make the songs; adapter files are then published to the storage
   */
  constructor(
    private readonly root: PermittedRoot,
    private readonly directory: string | null,
    private readonly isLocal: boolean,
    private readonly storage: AdapterStorage,
    private readonly isShared: boolean,
  ) {}

  /** Resolves a path sent by a client. @throws UnsafePathError */
  async resolve(path: string): Promise<string> {
    if (isAbsolute(path) && (this.isLocal || (await this.#isFurther(path)))) return path;
    return this.root.resolve(path);
  }

  /** Returns the path by which a client can load an adapter again. */
  shorten(path: string): string {
    return this.root.shorten(path);
  }

  async #isFurther(path: string): Promise<boolean> {
    if (this.directory === null) return false;
    const [directory, found] = await Promise.all([this.directory, path].map((each) => realpath(each))).catch(
      () => [],
    );
    return directory !== undefined && found !== undefined && isWithin(directory, found);
  }

  /**
   * Resolves each adapter to a path and a name, so that the task does not depend on the adapters that are loaded
   * when it runs.
   * @throws EngineError ADAPTER for an unknown name, or if there is no adapter at a path, UnsafePathError, StoreError, or the
   * signal's reason
   */
  async resolveAll(
    requested: readonly RequestedAdapter[],
    loaded: () => Promise<LoadedAdapters>,
    signal: AbortSignal,
  ): Promise<RequestedAdapter[]> {
    const resolved: RequestedAdapter[] = [];
    for (const one of requested) {
      resolved.push(
        one.path === null
          ? { ...one, ...(await taskAdapter(findAdapter(await loaded(), one.name as string))) }
          : await this.#fromFiles(one, one.path, signal),
      );
    }
    return resolved;
  }

  /**
   * Calls `work` with adapters whose files are local and stay there until `work` ends.
   * @throws StoreError, UnsafePathError, or the signal's reason
   */
  async withAdapters<T>(
    resolved: readonly RequestedAdapter[],
    work: (adapters: SongAdapter[]) => Promise<T>,
    signal: AbortSignal,
    loaded: SongAdapter[] = [],
  ): Promise<T> {
    const [first, ...rest] = resolved;
    if (first === undefined) return work(loaded);
    const { name, path, scale, doraEpsilon, stored } = first;
    const withRest = (path: string, digest: string) =>
      this.withAdapters(rest, work, signal, [
        ...loaded,
        { name: name as string, path, scale, doraEpsilon, digest },
      ]);
    if (stored !== undefined)
      return this.storage.withAdapter(stored, (path) => withRest(path, stored.digest), signal);
    const found = await this.resolve(path as string);
    return withRest(found, await adapterSignature(found));
  }

  async #fromFiles(
    requested: RequestedAdapter,
    path: string,
    signal: AbortSignal,
  ): Promise<RequestedAdapter> {
    const found = await this.resolve(path);
    const resolved = { ...requested, path: found, name: requested.name ?? basename(found) };
    if (this.isShared) return { ...resolved, stored: await this.storage.publish(found, signal) };
    await adapterSignature(found);
    return resolved;
  }
}
