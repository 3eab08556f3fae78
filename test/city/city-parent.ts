/**
 * Starts the city as a child process, like `carillon serve`, and sends the city's address to the test that forked this
 * process.
 */
import { fileURLToPath } from "node:url";
import { CityProcess } from "../../src/city/process.js";
import { createLogger } from "../../src/system/log.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const city = new CityProcess({
  command: [cli, "city", "--for-parent"],
  environment: process.env,
  log: createLogger("silent"),
});
process.send?.(await city.start());
