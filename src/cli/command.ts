/** Helpers shared by commands: settings from options, and an abort signal for Ctrl-C. */

const EXIT_INTERRUPTED = 130;

/** process.env, overridden by the given options. */
export function environmentWith(given: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}

export function interruptSignal(): AbortSignal {
  const interrupted = new AbortController();
  process.once("SIGINT", () => {
    process.exitCode = EXIT_INTERRUPTED;
    interrupted.abort(new Error("interrupted"));
  });
  return interrupted.signal;
}
