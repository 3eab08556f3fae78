/** Number of random inputs of a property test: `all` with `npm test -- --all`, otherwise a quarter of that. */
export function propertyRuns(all: number): number {
  return process.env.CARILLON_TEST_ALL === undefined ? Math.ceil(all / 4) : all;
}
