/** `carillon models pull`: a model of the hub into the checkpoint directory. */
import { join } from "node:path";
import { loadConfig } from "./index.js";
import { Hub } from "./models/hub.js";
import { inMegabytes, pullModel } from "./models/pull.js";
import { ProgressDisplay } from "./progress-display.js";

/** Prints progress on stderr, the folders that are new on stdout. */
export async function pull(name: string, signal: AbortSignal): Promise<void> {
  const { checkpointsDirectory, hubUrl, hubToken } = loadConfig();
  const hub = new Hub({ url: hubUrl, token: hubToken, signal });
  const display = new ProgressDisplay();
  try {
    const folders = await pullModel(name, checkpointsDirectory, hub, (progress) => {
      const { doneBytes, totalBytes, file, fileBytes } = progress;
      display.show({ value: doneBytes / totalBytes, stage: `${file} (${inMegabytes(fileBytes)})` });
    }).finally(() => display.stop());
    if (folders.length === 0) {
      console.error(`${name} is in ${checkpointsDirectory} already; remove its folder to download it anew`);
    }
    for (const folder of folders) console.log(join(checkpointsDirectory, folder));
  } catch (error) {
    if (signal.aborted) console.error("what is downloaded stays: the same command goes on from there");
    signal.throwIfAborted();
    throw error;
  }
}
