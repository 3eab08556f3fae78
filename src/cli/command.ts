/** Helpers shared by commands: empty arguments, settings from options, and an abort signal for Ctrl-C. */
import type { Command } from "commander";

const EXIT_INTERRUPTED = 130;

/** Options and arguments whose value may be empty: a song needs no words. */
const MAY_BE_EMPTY: readonly string[] = ["--lyrics", "prompt"];

/**
 * Rejects empty values, such as that of an unset variable in a script: an empty path would mean the current folder,
 * an empty name or key the default. @throws Error
 */
export function rejectEmptyValues(command: Command): void {
  const options = command.options.map((option) => {
    const name = option.attributeName();
    const isGiven = command.getOptionValueSource(name) === "cli";
    return [option.long ?? option.flags, isGiven ? command.getOptionValue(name) : null];
  });
  const values = command.registeredArguments.map((argument, i) => [
    argument.name(),
    command.processedArgs[i],
  ]);
  for (const [name, value] of [...options, ...values]) {
    const isEmpty = [value].flat().some((text) => typeof text === "string" && text.trim() === "");
    if (isEmpty && !MAY_BE_EMPTY.includes(name)) throw new Error(`${name}: the value is empty`);
  }
}

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
