/** Training in the studio: choose songs, describe them, train, and compare a song before and after. */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, expect } from "chai";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { RunRecord } from "../../../src/music/training/interrupted-run.js";
import { oneSecondSong } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { writeSampleSet } from "../training/sample-files.js";
import { longRun, shortRun, Trainer } from "../training/trainer.js";
import { button, PAGE_WIDTHS, Studio } from "./studio-fixture.js";

describe("training in the studio", function () {
  this.timeout(180_000);
  const root = temporaryDirectory();
  const studio = new Studio({ SVC_TRAINING_ROOT: root });

  for (const [width, place] of PAGE_WIDTHS) {
    it(`trains an adapter on chosen songs, and makes a song before and after training, ${place}`, async () => {
      const { client } = studio.server;
      const song = await client.makeOne({ ...oneSecondSong, prompt: "a reel" });
      const directory = temporaryDirectory();
      const files = ["one.mp3", "two.mp3"].map((name) => join(directory, name));
      for (const file of files) writeFileSync(file, await client.download(song));

      const page = await studio.open();
      await page.setViewportSize({ width, height: 800 });
      if (width === 390) await button(page, "Songs").click();
      await page.getByText("Models and adapters").click();
      await page.getByLabel("Songs to learn from").setInputFiles(files);
      await page.getByLabel("What one.mp3 sounds like").fill("a fast reel");
      await page.getByLabel("Name", { exact: true }).fill(`Reels ${width}`);
      await button(page, "Train").click();
      await page.getByText("Say what each song sounds like, or what all of them do.").waitFor();
      // The second page still shows the songs and the training of the first.
      const sound = `a slow reel on ${width}`;
      await page.getByLabel("What they sound like").fill(sound);
      await page.getByLabel("Epochs").fill("1");
      await page.getByLabel("Rank").fill("4");
      const text = join(directory, "notes.mp3");
      writeFileSync(text, "no sound");
      await page.getByLabel("Songs to learn from").setInputFiles([text]);
      await button(page, "Train").click();
      await page.getByText("No sound was found in notes.mp3.").waitFor();
      await button(page, "Remove notes.mp3").click();
      await button(page, "Train").click();
      await page.getByText("Training has started.").waitFor();
      await page.getByText(/Finished · step/).waitFor();

      // The page asks before it replaces a style, and sends no song twice.
      let sent = 0;
      page.on("request", (request) => request.url().includes("/v1/dataset/audio/") && sent++);
      const weights = join(root, `Reels ${width}`, "final/adapter/adapter_model.safetensors");
      const { mtimeMs } = statSync(weights);
      await button(page, "Train").click();
      await page.getByText(`The style Reels ${width} was trained already.`).waitFor();
      await button(page, "Keep it").click();
      await button(page, "Replace it").waitFor({ state: "detached" });
      expect(statSync(weights).mtimeMs).to.equal(mtimeMs);
      await button(page, "Train").click();
      await button(page, "Replace it").click();
      await page.getByText("Training has started.").waitFor();
      await page.getByText(/Finished · step/).waitFor();
      expect(statSync(weights).mtimeMs).to.be.above(mtimeMs);
      expect(sent).to.equal(0);
      const { samples } = (await client.get("/v1/dataset/samples")).body.data;
      expect(samples.map(({ caption }: { caption: string }) => caption)).to.deep.equal([
        "a fast reel",
        sound,
      ]);

      // The page leaves the length to the server, whose estimate is longer than this test needs.
      await page.route("**/release_task", (route) =>
        route.continue({ postData: { ...oneSecondSong, ...route.request().postDataJSON() } }),
      );
      await button(page, "Compare a song before and after").click();
      await button(page, "Back to the songs").click();
      await button(page, `Play ${sound}: after`).first().waitFor();
      await button(page, `Play ${sound}: before`).first().waitFor();
      const tasks = (await client.get(`/v1/tasks?search=${encodeURIComponent(`${sound}:`)}`)).body.data.tasks;
      const [after, before] = tasks.map(({ songs }: { songs: { seed: number }[] }) => songs[0]?.seed);
      expect(after).to.equal(before);
    });
  }

  it("keeps the form while the user looks at the songs", async () => {
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    const file = { name: "one.mp3", mimeType: "audio/mpeg", buffer: Buffer.from("sound") };
    await page.getByLabel("Songs to learn from").setInputFiles(file);
    await page.getByLabel("What one.mp3 sounds like").fill("a fast reel");
    await page.getByLabel("Name", { exact: true }).fill("Reels");
    await page.getByLabel("Epochs").fill("7");
    await button(page, "Back to the songs").click();
    await page.getByText("Models and adapters").click();
    expect(await page.getByLabel("What one.mp3 sounds like").inputValue()).to.equal("a fast reel");
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).to.equal("Reels");
    expect(await page.getByLabel("Epochs").inputValue()).to.equal("7");
  });

  it("refuses names that would become folders or leave the training folder", async () => {
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    await page.getByLabel("Folder of recordings").fill("songs");
    const name = page.getByLabel("Name", { exact: true });
    const validity = () => name.evaluate((field: HTMLInputElement) => field.validationMessage);
    for (const refused of ["my style/new", "..", "back\\slash"]) {
      await name.fill(refused);
      await button(page, "Train").click();
      expect(await validity()).to.equal("Choose a name without slashes that does not start with a dot.");
    }
    await name.fill("my style");
    expect(await validity()).to.equal("");
  });

  it("says that a restart interrupted a training, and resumes it from its last checkpoint", async () => {
    mkdirSync(join(root, "set"));
    writeSampleSet(join(root, "set"), 2);
    const trainer = () => new Trainer(studio.server.client, root);
    await trainer().start({ ...longRun, lora_output_dir: "Endless" });
    await trainer().until(({ current_step }) => current_step >= 2);
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    await button(page, "Stop").waitFor();
    await studio.restart();
    const words = page.getByText(
      /The training of Endless was interrupted at step \d+, as the server stopped/,
    );
    const step = Number(/step (\d+)/.exec((await words.textContent()) ?? "")?.[1]);
    expect(step).to.be.at.least(2);
    await button(page, "Resume from the last checkpoint").click();
    await page.getByText("Training has started.").waitFor();
    const { loss_history } = await trainer().until(({ current_step }) => current_step > step);
    expect(loss_history[0]?.step).to.equal(step + 1);
    await words.waitFor({ state: "detached" });
    await button(page, "Stop").click();
    await page.getByText(/Stopped · step/).waitFor();
    await studio.restart();
    expect((await trainer().status()).interrupted).to.equal(null);
    studio.browserErrors.length = 0;
  });

  it("says that an interrupted training left no checkpoint, and starts it again", async () => {
    const record = new RunRecord(new PermittedRoot(root), ({ message }) => assert.fail(message));
    await record.write({
      adapter_type: "lora",
      output_dir: "Brief",
      parameters: { ...shortRun, lora_output_dir: "Brief", train_epochs: 1 },
    });
    await studio.restart();
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    await page.getByText("No checkpoint had been saved.").waitFor();
    await button(page, "Start it again").click();
    await page.getByText(/Finished · step/).waitFor();
    await button(page, "Load Brief").waitFor();
  });
});
