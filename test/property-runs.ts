/**
 * Number of random inputs for a property test: `all` inputs with `npm test -- --all`, else a quarter of them.
 */
export function propertyRuns(all: number): number {
  return process.env.CARILLON_TEST_ALL === undefined ? Math.ceil(all / 4) : all;
}
