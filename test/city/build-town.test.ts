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

describe("the example agent of the README", () => {
  it("the example agent reaches 2,000 citizens in one year and 5,000 in three without bankruptcy @slow", async () => {
    const savesDirectory = temporaryDirectory();
    const onSaveFailed = (error: Error) => {
      throw error;
    };
    const game = new EmbeddedGame({ savesDirectory, onSaveFailed });
    game.startCity({ seed: 1, map: "highway", paused: true });
    const server = await startGameBridge(game, { port: 0, allowedOrigins: [], log: SILENT });
    try {
      const { stdout } = await promisify(execFile)("node", ["examples/build-town.mjs", "3", server.url]);
      expect(await readFile(join(import.meta.dirname, "../../README.md"), "utf8")).to.include(stdout.trim());
      const lines = stdout.trim().split("\n");
      const [, , year1, , , , year3] = lines.map((line) => Number(LINE.exec(line)?.[1]));
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
});
