/** What TypeScript programs use of run.mjs. */
export const cacheRoot: string;
