/** Type declarations of run.mjs, of what TypeScript programs use. */
export const cacheRoot: string;
