/** Returns the error that `action` throws. @throws Error if it throws none */
export function thrownBy(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error("no error was thrown");
}

/** Returns the rejection error of a promise. @throws Error if it is fulfilled */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: unknown }> {
  return promise.then(
    () => {
      throw new Error("nothing failed");
    },
    (error) => error,
  );
}
