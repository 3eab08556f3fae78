/** Number of random inputs of a property: all with `npm test -- --all`, a quarter in quick runs. */
export function propertyRuns(all: number): number {
  return process.env.CARILLON_TEST_ALL === undefined ? Math.ceil(all / 4) : all;
}
