/** Tests that text of the user in the studio is not lost. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { oneSecondSong } from "../live-server.js";
import { button, PAGE_WIDTHS, Studio } from "./studio-fixture.js";

describe("keeping unfinished work in the studio", function () {
  this.timeout(300_000);
  const studio = new Studio();
  before(() => studio.server.client.make({ ...oneSecondSong, prompt: "a kept song" }));

  const sound = (page: Page) => page.getByLabel("Sound", { exact: true });

  for (const [width, place] of PAGE_WIDTHS) {
    it(`replaced text is restored by Ctrl+Z and by Undo in the notification, ${place}`, async () => {
      const page = await studio.open();
      await page.setViewportSize({ width, height: 800 });
      await sound(page).fill("my own words");
      await button(page, "Clear").click();
      expect(await sound(page).inputValue()).to.equal("");
      await button(page, "Undo").click();
      expect(await sound(page).inputValue()).to.equal("my own words");
      await button(page, "Surprise me").click();
      await page.getByText("The form is filled in.").waitFor();
      expect(await sound(page).inputValue()).to.not.equal("my own words");
      await page.keyboard.press("Control+z");
      expect(await sound(page).inputValue()).to.equal("my own words");

      const lyrics = page.getByLabel("Lyrics", { exact: true });
      await lyrics.fill("la la");
      await button(page, "Chorus").click();
      await page.keyboard.press("Control+z");
      expect(await lyrics.inputValue()).to.equal("la la");
      await page.getByText("carillon-nano does not sing").waitFor();
      await button(page, "Get acestep-v15-turbo, which sings").waitFor();
      await page.getByText(/^6\.40 GB to download/).waitFor();

      await sound(page).fill("x".repeat(4100));
      await page.getByText("4 characters too long: 4100 of 4096.").waitFor();
      await button(page, "Make").click();
      expect((await studio.server.client.get("/v1/stats")).body.data.jobs.total).to.equal(1);
      await sound(page).fill("x".repeat(900));
      await page.getByText("Long: models read about the first 800 of 900 characters.").waitFor();
    });
  }

  it("Undo of Clear loses no words that were typed since: a second Undo brings them back", async () => {
    const page = await studio.open();
    await sound(page).fill("old words");
    await button(page, "Clear").click();
    await sound(page).fill("new words");
    await button(page, "Undo").click();
    expect(await sound(page).inputValue()).to.equal("old words");
    await page.getByText("Undo brings back your new words.").waitFor();
    await button(page, "Undo").click();
    expect(await sound(page).inputValue()).to.equal("new words");
  });
});
