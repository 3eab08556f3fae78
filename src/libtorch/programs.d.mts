/** Type declarations of programs.mjs. */
export const cacheRoot: string;
