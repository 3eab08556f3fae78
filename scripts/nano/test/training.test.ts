import { execFileSync } from "node:child_process";
import { expect } from "chai";
import { pythonOf } from "../python.js";

describe("training in Python", () => {
  it("passes its own tests", function () {
    this.timeout(1_200_000);
    const { env, directory } = pythonOf("training");
    const discover = ["-m", "unittest", "discover", "--start-directory", "test"];
    expect(() =>
      execFileSync("python3", discover, { cwd: directory, env, stdio: ["ignore", "inherit", "inherit"] }),
    ).to.not.throw();
  });
});
