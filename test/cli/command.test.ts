import { expect } from "chai";
import { run } from "../../src/cli/program.js";
import { failureOf } from "../failures.js";

/** Error of the command line with these arguments, run in this process. */
async function refusal(...args: string[]): Promise<Error> {
  const { argv } = process;
  process.argv = [...argv.slice(0, 2), ...args];
  try {
    return await failureOf(run("carillon"));
  } finally {
    process.argv = argv;
  }
}

describe("arguments of the command line", () => {
  for (const [name, args] of [
    ["--lora", ["generate", "x", "--lora", "", "--out", "none.wav"]],
    ["--lora", ["generate", "x", "--lora", "a", " ", "--out", "none.wav"]],
    ["--out", ["generate", "x", "--out="]],
    ["--seed", ["generate", "x", "--seed", "", "--out", "none.wav"]],
    ["directory", ["preprocess", "", "--out", "samples"]],
    ["name", ["models", "pull", ""]],
    ["--api-key", ["serve", "--api-key", ""]],
    ["--home", ["worker", "--home="]],
    ["--load", ["city", "--load", ""]],
  ] as const) {
    it(`${args[0]} rejects an empty ${name}: ${args.map((arg) => arg || '""').join(" ")}`, async () => {
      expect(await refusal(...args)).to.include({ message: `${name}: the value is empty` });
    });
  }
});
