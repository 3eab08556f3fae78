/** Source and reference recordings in the studio. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { shortSong } from "../live-server.js";
import { button, effectsRun, Studio } from "./studio-fixture.js";

describe("use of recordings in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();
  before(() => studio.server.client.make(shortSong));

  /** Makes a song in the form, with one version and one step. Returns the task when it has succeeded. */
  async function make(page: Page, sound: string) {
    await page.getByLabel("Sound", { exact: true }).fill(sound);
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await page.getByText("All settings").click();
    await page.getByLabel("Steps", { exact: true }).fill("1");
    await page.getByText("All settings").click();
    await button(page, /^(Make|Add to queue)$/).click();
    await button(page, new RegExp(`^Play ${sound}`)).waitFor();
    const { tasks } = (await studio.server.client.get("/v1/tasks?state=succeeded")).body.data;
    return tasks[0];
  }

  for (const [end, told] of [
    ["beginning", "Adds 10 s before it, replaces 0:00 to 0:01."],
    ["end", "Replaces 0:09 to 0:10, adds 10 s after it."],
  ]) {
    it(`a source can be extended by ten seconds at the ${end}; the form describes the change beforehand @slow`, async () => {
      const page = await studio.open();
      await button(page, "More of a short song").click();
      await button(page, "Edit").click();
      await page.getByText("0:10", { exact: true }).waitFor();
      await button(page, `Extend the ${end}`).click();
      await page.getByText(told as string).waitFor();
      const { task_type, songs } = await make(page, `a longer ${end}`);
      expect(task_type).to.equal("repaint");
      expect(songs[0].metas.duration).to.equal(20);
      await button(page, `Play a longer ${end} (extended)`).waitFor();
      await page.getByRole("link", { name: "extends a short song" }).first().waitFor();
    });
  }

  it("several parts of a source can be replaced; the user drags over the waveform to select each", async () => {
    const page = await studio.open();
    await button(page, "More of a short song").last().click();
    await button(page, "Edit").click();
    await page.getByText("0:10", { exact: true }).waitFor();
    const wave = page.locator(".source .canvas > div");
    /** Drags the mouse over the visible waveform, between two fractions of its width. */
    const drag = async (from: number, to: number) => {
      await effectsRun(page);
      const { x, y, width, height } = (await wave.boundingBox()) as {
        x: number;
        y: number;
        width: number;
        height: number;
      };
      await page.mouse.move(x + from * width, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + to * width, y + height / 2, { steps: 5 });
      await page.mouse.up();
    };
    await drag(0.1, 0.3);
    const start = page.getByLabel("From");
    expect(Number(await start.inputValue())).to.be.closeTo(1, 0.11);
    await button(page, "Keep this part, select another").click();
    await button(page, /^Remove 0:01 – 0:03$/).waitFor();
    await button(page, "Zoom in").click();
    await drag(0.5, 0.75);
    // The visible part of the waveform is half of the recording.
    expect(Number(await start.inputValue())).to.be.closeTo(2.5, 0.3);
    const { parameters, task_type } = await make(page, "two new parts");
    expect(task_type).to.equal("repaint");
    expect(parameters.repainting_windows).to.have.length(2);
    expect(parameters.repainting_windows[1][0]).to.be.closeTo(2.5, 0.3);
    await page.reload();
    await button(page, "Play two new parts (part changed)").waitFor();
  });

  it("an edit without a part replaces the whole song: the form says so beforehand, and the new song's name", async () => {
    const page = await studio.open();
    await button(page, "More of a short song").last().click();
    await button(page, "Edit").click();
    const whole = page.getByText("Without a part, the whole recording is replaced.");
    await whole.waitFor();
    await page.getByLabel("From").fill("2");
    await page.getByText("Replaces 0:02 to 0:10.").waitFor();
    expect(await whole.isVisible()).to.equal(false);
    await page.getByLabel("From").fill("");
    await make(page, "all of it");
    await button(page, "Play all of it (new version)").waitFor();
    await page.getByRole("link", { name: "new version of a short song" }).waitFor();
  });

  for (const [what, field, wanted] of [
    ["Add a stem", "track_name", { task_type: "lego", track_name: "bass" }],
    ["Extract a stem", "track_name", { task_type: "extract", track_name: "bass" }],
    ["Complete", "track_classes", { task_type: "complete", track_classes: ["drums", "bass"] }],
  ] as const) {
    it(`a dropped file becomes the source of "${what}" @slow`, async () => {
      const { client } = studio.server;
      const [song] = (await client.get("/v1/tasks?search=short")).body.data.tasks[0].songs;
      const page = await studio.open();
      const dropped = await page.evaluateHandle(
        (bytes) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], "tune.mp3", { type: "audio/mpeg" }));
          return transfer;
        },
        [...(await client.download(song))],
      );
      await page.locator("#source").dispatchEvent("drop", { dataTransfer: dropped });
      await page.getByText("tune.mp3").waitFor();
      await page.getByLabel("What to do").selectOption(what);
      const input = page.locator(`[name=${field}]`);
      if (field === "track_name") await input.selectOption("bass");
      else await input.pressSequentially("drums, bass");
      const task = await make(page, `${what} to it`);
      expect(task.parameters.src_audio_path).to.match(/^upload:ctx_audio_/);
      expect({ task_type: task.task_type, ...task.parameters }).to.deep.include(wanted);
    });
  }

  it("a recording can be the timbre reference of a song that has another source", async () => {
    const { client } = studio.server;
    const [song] = (await client.get("/v1/tasks?search=short")).body.data.tasks[0].songs;
    const buffer = await client.download(song);
    const page = await studio.open();
    const file = (name: string) => ({ name, mimeType: "audio/mpeg", buffer });
    await page.getByText("Reference recording").click();
    await page.getByLabel("Reference recording").setInputFiles(file("violin.mp3"));
    await page.getByText("violin.mp3").waitFor();
    await page.getByLabel("Recording to work on").setInputFiles(file("tune.mp3"));
    await page.getByText("tune.mp3").waitFor();
    const letter = await page
      .locator(".source .name")
      .evaluate((name) => getComputedStyle(name, "::first-letter").textTransform);
    expect(letter, "file names are shown as they are").to.equal("none");
    const cover = await make(page, "the tune on a violin");
    expect(cover.task_type).to.equal("cover");
    expect(cover.parameters.src_audio_path).to.match(/^upload:ctx_audio_/);
    expect(cover.parameters.reference_audio_path).to.match(/^upload:ref_audio_/);
  });
});
