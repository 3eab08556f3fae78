/** A process that loads a saved city and saves it over itself again and again, until it is killed. */
import { basename } from "node:path";
import { readSave, SaveFiles } from "../../../src/city/simulation/saves/save-files.js";

const [path, directory] = process.argv.slice(2) as [string, string];
const { world } = await readSave(path);
const saves = new SaveFiles(directory, (error) => {
  throw error;
});
process.send?.("saving");
for (;;) {
  saves.begin(world, basename(path, ".crp"));
  await saves.settled();
}
