/** Declarations that TypeScript uses. */
export const cacheRoot: string;
