/** What commands share: settings from their options, and an abort signal for Ctrl-C. */

/** Exit code of a program ended by SIGINT. */
const EXIT_INTERRUPTED = 130;

/** process.env, overridden by the given options. */
export function environmentWith(given: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

/** Signal that aborts on SIGINT. */
export function interruptSignal(): AbortSignal {
  const interrupted = new AbortController();
  process.once("SIGINT", () => {
    process.exitCode = EXIT_INTERRUPTED;
    interrupted.abort(new Error("interrupted"));
  });
  return interrupted.signal;
}
