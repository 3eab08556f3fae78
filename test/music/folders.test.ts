import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "chai";
import { loadConfig } from "../../src/config.js";
import { createMusicServer, type MusicServer } from "../../src/index.js";
import { createLogger } from "../../src/system/log.js";
import { writeRecording } from "./audio/recordings.js";
import { Client, shortSong } from "./live-server.js";
import { stubEngine } from "./stub-engine.js";
import { temporaryDirectory } from "./tasks.js";

for (const place of ["SVC_TMPDIR", "SVC_STORAGE"] as const) {
  describe(`folders in ${place} that are deleted while the server runs`, () => {
    const home = temporaryDirectory();
    const temporary = join(home, "tmp");
    const training = join(home, "training");
    const root = place === "SVC_TMPDIR" ? temporary : temporaryDirectory();
    const tone = writeRecording(join(temporaryDirectory(), "tone.wav"), { seconds: 1 });
    const recording = new File([readFileSync(tone)], "tone.wav");
    let onRender = () => {};
    let server: MusicServer;
    let client: Client;

    before(async () => {
      const settings = { SVC_API_PORT: "0", SVC_TMPDIR: temporary, SVC_TRAINING_ROOT: training };
      const storage = place === "SVC_STORAGE" ? { SVC_STORAGE: pathToFileURL(root).href } : {};
      const config = loadConfig({ ...settings, ...storage });
      const engine = stubEngine(() => {
        onRender();
        return 0;
      });
      server = await createMusicServer({ config, engine, log: createLogger("silent") });
      client = new Client(server.url);
    });
    after(() => server.close());
    afterEach(() => {
      onRender = () => {};
    });

    const remove = (folder: string) => rmSync(folder, { recursive: true, force: true });
    const songFolders = () => {
      remove(join(root, "api_audio"));
      remove(join(temporary, "unpublished"));
    };

    async function makesSong(parameters: object = {}): Promise<void> {
      const { item, records } = await client.finished(await client.submit({ ...shortSong, ...parameters }));
      expect(item.status, item.result).to.equal(1);
      expect((await fetch(server.url + records[0]?.file)).status).to.equal(200);
    }

    it("makes the folder of songs again, also if it is deleted while a song is made", async () => {
      songFolders();
      await makesSong();
      onRender = songFolders;
      await makesSong();
      await makesSong({ audio_format: "mp3" });
    });

    it("makes the folder of uploads again", async () => {
      remove(join(root, "uploads"));
      await makesSong({ reference_audio: recording });
    });

    it("refuses an upload with the reason if the folder of uploads is a file", async () => {
      const uploads = join(root, "uploads");
      remove(uploads);
      writeFileSync(uploads, "");
      const { status, body } = await client.postForm("/release_task", {
        ...shortSong,
        reference_audio: recording,
      });
      rmSync(uploads);
      expect(status, body.detail).to.equal(503);
      expect(body.detail).to.contain("uploads is not writable");
    });

    it("makes SVC_TRAINING_ROOT again", async () => {
      remove(training);
      const { status } = await client.post("/v1/dataset/scan", { audio_dir: "." });
      expect(status).to.be.oneOf([200, 400]);
      expect(existsSync(training)).to.equal(true);
    });

    it("writes the task store again, and runs the tasks that wait in it", async () => {
      onRender = () => remove(join(temporary, "tasks"));
      const ids = [await client.submit(shortSong), await client.submit(shortSong)];
      for (const id of ids) expect((await client.finished(id)).item.status).to.equal(1);
      await makesSong();
      expect(existsSync(join(temporary, "tasks", "data.mdb"))).to.equal(true);
    });

    it("refuses new tasks and changes with the reason if SVC_TMPDIR is gone; a running task ends", async () => {
      onRender = () => remove(temporary);
      const { item, records } = await client.finished(await client.submit(shortSong));
      expect(item.status, item.result).to.equal(1);
      expect(records[0]?.warnings.join()).to.match(
        /^The end of this task could not be recorded: .* restart the server\./,
      );
      const id = item.task_id;
      let renderings = 0;
      onRender = () => {
        renderings++;
      };
      remove(temporary);
      const answers = [
        await client.post("/release_task", shortSong),
        await client.postForm("/release_task", { ...shortSong, reference_audio: recording }),
        await client.post("/v1/chat/completions", { messages: [{ role: "user", content: "a waltz" }] }),
        await client.patch(`/v1/tasks/${id}`, { title: "x" }),
        await client.delete(`/v1/tasks/${id}?state=succeeded`),
      ];
      for (const { status, body } of answers) {
        expect(status).to.equal(503);
        expect(body.detail).to.match(/the task store .* was deleted or replaced .*: restart the server$/);
      }
      expect(renderings).to.equal(0);
      expect((await client.get(`/v1/tasks/${id}`)).body.data.state).to.equal("succeeded");
    });
  });
}
