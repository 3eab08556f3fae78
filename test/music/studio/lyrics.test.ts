/** Tests the lyrics that the studio shows during playback. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shortSong } from "../live-server.js";
import { LYRIC_MODEL, lyricModel } from "../lyric-model.js";
import { temporaryDirectory } from "../tasks.js";
import { button, checkLowPlayer, effectsRun, Studio } from "./studio-fixture.js";

const LINES = ["Sleep, the tide is low", "Donaudampfschifffahrtsgesellschaftskapitänslied", "hush"];

describe("lyrics in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio(lyricModel(temporaryDirectory()));

  it("lyrics have timestamps, follow playback and can be downloaded", async () => {
    const page = await studio.open();
    await page.getByLabel("Sound", { exact: true }).fill("a lullaby");
    await page.getByRole("textbox", { name: "Lyrics" }).fill(LINES.join("\n"));
    await page.getByText("Tempo, key, language").click();
    await page.getByLabel("Lyric timestamps").check();
    await page.getByLabel("Length s").fill(String(shortSong.audio_duration));
    await page.getByText("All settings").click();
    await page.getByLabel("Steps", { exact: true }).fill("1");
    await page.getByRole("combobox", { name: "Model", exact: true }).selectOption(LYRIC_MODEL);
    await button(page, "Make").click();
    await button(page, "Play a lullaby").click();
    await page.keyboard.press("ArrowRight");

    await page
      .locator(".player .sung")
      .getByText(LINES.at(-1) as string, { exact: true })
      .waitFor();
    await page.locator(".player .sung").click();
    await page
      .locator(".karaoke [aria-current]")
      .getByText(LINES.at(-1) as string, { exact: true })
      .waitFor();
    // While a song plays, a busy machine may see the next line before it sees this one.
    await page.locator(".player .play[aria-label=Play]").waitFor();
    await button(page, LINES[0] as string).click();
    await page
      .locator(".karaoke [aria-current]")
      .getByText(LINES[0] as string)
      .waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await effectsRun(page);
    const isCut = await page.locator(".karaoke").evaluate((words) => words.scrollWidth > words.clientWidth);
    expect(isCut, "a long word is cut off").to.equal(false);
    const sung = page.locator(".player .sung");
    await checkLowPlayer(page, button(page, "Play"), button(page, "Next song"), sung);
    await page.setViewportSize({ width: 1200, height: 800 });
    await sung.click();
    await page.locator(".karaoke").waitFor({ state: "detached" });
    await button(page, "More of a lullaby").click();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Lyrics with times" }).first().click();
    const file = await download;
    expect(file.suggestedFilename()).to.equal("a lullaby.lrc");
    const [task] = (await studio.server.client.get("/v1/tasks")).body.data.tasks;
    expect(readFileSync(await file.path(), "utf8")).to.equal(task.songs[0].lrc);
  });
});
