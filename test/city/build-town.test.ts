import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { startGameBridge } from "../../src/city/index.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import { budgetOf } from "../../src/city/simulation/life/finance.js";
import type { World } from "../../src/city/simulation/state/world.js";
import { temporaryDirectory } from "../music/tasks.js";
import { SILENT } from "./bridge.js";

const LINE = /^Week \d+: (\d+) citizens, balance -?[\d.]+$/;

describe("examples that need a server", () => {
  it("the example agent reaches 2,000 citizens in one year and 5,000 in three without bankruptcy @slow", async () => {
    const savesDirectory = temporaryDirectory();
    const onSaveFailed = (error: Error) => {
      throw error;
    };
    const game = new EmbeddedGame({ savesDirectory, onSaveFailed });
    // The example begins its own city.
    game.startCity({ seed: 9, map: "empty", paused: false });
    const server = await startGameBridge(game, { port: 0, allowedOrigins: [], log: SILENT });
    try {
      const { stdout } = await promisify(execFile)("node", ["examples/build-town.mjs", "3", server.url]);
      const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
      const lines = stdout.trim().split("\n");
      expect(lines.slice(0, 5)).to.deep.equal(readme.split("\n").filter((line) => LINE.test(line)));
      const [year1, year3] = [4, 12].map((quarter) => Number(LINE.exec(lines[quarter] ?? "")?.[1]));
      expect(year1, stdout).to.be.at.least(2_000);
      expect(year3, stdout).to.be.at.least(5_000);
      const world = game.world as World;
      expect(Math.min(...world.statistics.samples.map(({ balance }) => balance))).to.be.greaterThan(0);
      expect(budgetOf(world).income.find(({ name }) => name === "Grants")?.total).to.equal(0);
    } finally {
      await server.close();
      await game.close();
    }
  }).timeout(1_200_000);

  for (const [example, ...args] of [
    ["build-town.mjs", "1", "http://127.0.0.1:1"],
    ["client.mjs", "song", "song.mp3", "http://127.0.0.1:1"],
    ["follow.mjs", "song", "song.mp3", "http://127.0.0.1:1"],
  ] as const) {
    it(`${example} ends with one sentence if no server runs`, async () => {
      const failure = await promisify(execFile)("node", [`examples/${example}`, ...args]).catch(
        (error) => error,
      );
      expect(failure.code).to.equal(1);
      expect(failure.stderr).to.match(
        /^No (city|server) answers at http:\/\/127\.0\.0\.1:1\. Start one with: npx carillon serve\n$/,
      );
    });
  }
});
