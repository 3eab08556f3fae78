/** Tests the reuse of songs and settings in the studio. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { oneSecondSong } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { button, PAGE_WIDTHS, Studio } from "./studio-fixture.js";

describe("reuse of songs and settings in the studio", function () {
  this.timeout(300_000);
  const studio = new Studio();
  const prompt = "a repeatable waltz";
  before(() => studio.server.client.make({ ...oneSecondSong, prompt, use_random_seed: false, seed: 41 }));

  const sound = (page: Page) => page.getByLabel("Sound", { exact: true });
  const tasks = async () => (await studio.server.client.get("/v1/tasks")).body.data.tasks;
  async function finished(count: number): Promise<void> {
    while ((await tasks()).filter(({ state }: { state: string }) => state === "succeeded").length < count)
      await new Promise((resolve) => setTimeout(resolve, 200));
  }

  for (const [width, place] of PAGE_WIDTHS) {
    it(`a saved settings file fills the form, ${place}`, async () => {
      const page = await studio.open();
      await page.setViewportSize({ width, height: 800 });
      const showSongs = () => (width === 390 ? button(page, "Songs").click() : Promise.resolve());
      await showSongs();
      await button(page, `More of ${prompt}`).last().click();
      const download = page.waitForEvent("download");
      await page.getByRole("link", { name: "Save settings" }).click();
      const saved = await download;
      expect(saved.suggestedFilename()).to.equal(`${prompt}.json`);
      const path = await saved.path();
      expect(JSON.parse(readFileSync(path, "utf8")).parameters).to.deep.include({ prompt, seed: [41] });

      if (width === 390) await button(page, "Make a song").click();
      await sound(page).fill("other words");
      const directory = temporaryDirectory();
      const file = join(directory, "song.json");
      writeFileSync(file, readFileSync(path));
      await page.getByText("Presets").click();
      await page.getByLabel("Open settings").setInputFiles(file);
      await page.getByText("These settings are in the form now.").waitFor();
      expect(await sound(page).inputValue()).to.equal(prompt);
      const before = (await tasks()).length;
      await button(page, "Make").click();
      await finished(before + 1);
      const [again] = await tasks();
      expect(again.songs[0].seed).to.equal(41);

      if (width === 390) await button(page, "Make a song").click();
      writeFileSync(file, '{"type":"shopping list"}');
      await page.getByLabel("Open settings").setInputFiles(file);
      await page.getByText("song.json is not a settings file of a song.").waitFor();
    });
  }

  it("a preset contains all settings except the prompt; Clear empties the form", async () => {
    const page = await studio.open();
    await sound(page).fill("not in the preset");
    await page.getByLabel("Versions", { exact: true }).fill("3");
    await page.getByText("Presets").click();
    await page.getByLabel("Name of the preset").fill("Trios");
    await button(page, "Save as preset").click();
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await button(page, "Clear").click();
    expect(await page.getByLabel("Versions", { exact: true }).inputValue()).to.equal("");
    expect(await sound(page).inputValue()).to.equal("");

    await page.reload();
    await page.getByText("Presets").click();
    await sound(page).fill("new words");
    await button(page, "Trios").click();
    expect(await page.getByLabel("Versions", { exact: true }).inputValue()).to.equal("3");
    expect(await sound(page).inputValue()).to.equal("new words");
    await button(page, "Delete the preset Trios").click();
    expect(await button(page, "Trios").count()).to.equal(0);
  });

  it("a song can become the reference of the next song", async () => {
    const page = await studio.open();
    await button(page, `More of ${prompt}`).last().click();
    await button(page, "Use as reference").click();
    await page.getByText("is the reference recording.").waitFor();
    const count = (await tasks()).length;
    await sound(page).fill("in that sound");
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await page.getByLabel("Length").fill("10");
    await button(page, "Make").click();
    await finished(count + 1);
    const [{ parameters }, ...earlier] = await tasks();
    expect(parameters.reference_audio_path).to.include(earlier.at(-1).task_id);
  });
});
