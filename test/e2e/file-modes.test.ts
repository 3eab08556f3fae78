import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

describe("permissions of a server's files", () => {
  const home = temporaryDirectory();

  after(endServed);

  /** Permissions of all files in a server's home after a song, as octal digits. */
  async function modes() {
    const directories = { SVC_TRAINING_ROOT: join(home, "training"), CITY_SAVES_DIR: join(home, "saves") };
    const server = await ServedProcess.startWithCity(join(home, "tmp"), directories);
    await server.client.make({ ...shortSong, audio_format: "mp3" });
    await server.client.make({ ...shortSong, audio_format: "wav" });
    await server.end("SIGTERM");
    const found = readdirSync(home, { recursive: true }).map((name) => statSync(join(home, String(name))));
    const modesOf = (isFolder: boolean) => [
      ...new Set(
        found
          .filter((entry) => entry.isDirectory() === isFolder)
          .map(({ mode }) => (mode & 0o777).toString(8)),
      ),
    ];
    return { files: modesOf(false), folders: modesOf(true) };
  }

  it("files of a server are readable only by the user who runs it @slow", async () => {
    expect(await modes()).to.deep.equal({ files: ["600"], folders: ["700"] });
  });
});
