/** Ends waits: for a receiver, a store, a game or a browser. Uses no Node modules, because the client runs in browsers too. */

export interface TimeLimit {
  ms: number;
  /** Ends the wait too, with its reason. */
  signal?: AbortSignal | undefined;
  /** The error of a wait that took too long. */
  error(): Error;
}

/**
 * Runs `work` for at most `ms`. `work` gets a signal that aborts at the limit, and should stop then; the returned
 * promise rejects at the limit even if it does not. `restart` starts the time again: work that makes progress calls it.
 *
 * Not `AbortSignal.any([signal, AbortSignal.timeout(ms)])`: Node 20 collects that timeout as garbage before it fires.
 * @throws the limit's error, the signal's reason, or the error of `work`
 */
export async function withTimeLimit<T>(
  { ms, signal, error }: TimeLimit,
  work: (signal: AbortSignal, restart: () => void) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const over = new AbortController();
  const onAbort = () => over.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const restart = () => {
    clearTimeout(timer);
    timer = setTimeout(() => over.abort(error()), ms);
  };
  restart();
  const ended = new Promise<never>((_resolve, reject) => {
    over.signal.addEventListener("abort", () => reject(over.signal.reason), { once: true });
  });
  try {
    return await Promise.race([ended, work(over.signal, restart)]);
  } catch (failure) {
    // Aborted work fails with errors that differ by library.
    over.signal.throwIfAborted();
    throw failure;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
