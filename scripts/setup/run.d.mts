/** Types of those parts of run.mjs that TypeScript programs use. */
export const cacheRoot: string;
