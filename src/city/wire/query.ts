/**
 * Query strings as clients of the bridge write them. A value that does not parse counts as absent, so that nothing is
 * refused here; numbers out of range are clamped by whoever asks.
 */

const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)$/;

export class Query {
  private readonly pairs: readonly (readonly [key: string, value: string])[];

  /** @param url path and query as they came; pairs with no `=`, or more than one, do not count */
  constructor(url: string) {
    const [, search = ""] = url.split(/\?(.*)/s);
    this.pairs = search.split("&").flatMap((pair) => {
      const [key, value, ...rest] = pair.split("=");
      return key === undefined || value === undefined || rest.length > 0 ? [] : [[key, value] as const];
    });
  }

  text(key: string): string {
    const value = this.values(key)[0];
    return value === undefined ? "" : decode(value);
  }

  integer(key: string, fallback: number): number {
    return this.parsed(key, INTEGER, fallback);
  }

  decimal(key: string, fallback: number): number {
    return this.parsed(key, DECIMAL, fallback);
  }

  /** True for the exact text `true` only. */
  flag(key: string, fallback: boolean): boolean {
    const value = this.values(key)[0];
    return value === undefined ? fallback : decode(value) === "true";
  }

  private parsed(key: string, pattern: RegExp, fallback: number): number {
    const value = this.values(key)
      .map(decode)
      .find((text) => pattern.test(text) && Number.isFinite(Number(text)));
    return value === undefined ? fallback : Number(value);
  }

  private values(key: string): string[] {
    return this.pairs.filter(([name]) => name === key).map(([, value]) => value);
  }
}

/** Text that is no valid encoding stays as it is. */
function decode(value: string): string {
  const spaced = value.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
