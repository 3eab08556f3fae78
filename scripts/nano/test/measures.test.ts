import { testPython } from "./python-tests.js";

describe("measures of carillon-nano's evaluation", () => {
  it("pass their own tests, which are in Python", function () {
    this.timeout(1_200_000);
    testPython("eval");
  });
});
