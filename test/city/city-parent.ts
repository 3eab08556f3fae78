/** A process that starts the city like `carillon serve` and sends its address, until it is killed. */
import { fileURLToPath } from "node:url";
import { startCityProcess } from "../../src/city/process.js";
import { createLogger } from "../../src/system/log.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const { url } = await startCityProcess({
  command: [cli, "city", "--for-parent"],
  environment: process.env,
  log: createLogger("silent"),
});
process.send?.(url);
