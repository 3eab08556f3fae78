/** Returns the error of an action. @throws Error if the action succeeds */
export function thrownBy(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error("no error was thrown");
}

/** Returns the error with which a promise is rejected. @throws Error if it is fulfilled */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: unknown }> {
  return promise.then(
    () => {
      throw new Error("nothing failed");
    },
    (error) => error,
  );
}
