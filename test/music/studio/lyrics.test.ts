/** The words of a song in the studio, while they are sung. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shortSong } from "../live-server.js";
import { LYRIC_MODEL, lyricModel } from "../lyric-model.js";
import { temporaryDirectory } from "../tasks.js";
import { button, Studio } from "./studio-fixture.js";

const LINES = ["Sleep, the tide is low", "boats lie in a row", "hush"];

describe("lyrics in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio(lyricModel(temporaryDirectory()));

  it("are asked for with their times, follow what plays, and are a file", async () => {
    const page = await studio.open();
    await page.getByLabel("Sound").fill("a lullaby");
    await page.getByLabel("Lyrics").fill(LINES.join("\n"));
    await page.getByText("Length, tempo, key").click();
    await page.getByLabel("Tell when each line is sung").check();
    await page.getByLabel("Length s").fill(String(shortSong.audio_duration));
    await page.getByText("All settings").click();
    await page.getByLabel("Inference steps").fill("1");
    await page.getByRole("textbox", { name: "Model", exact: true }).fill(LYRIC_MODEL);
    await button(page, "Make").click();
    await button(page, "Play a lullaby").click();

    await page
      .locator(".player .sung")
      .getByText(LINES.at(-1) as string, { exact: true })
      .waitFor();
    await button(page, "More of a lullaby").click();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Lyrics with times" }).first().click();
    const file = await download;
    expect(file.suggestedFilename()).to.equal("a lullaby.lrc");
    const [task] = (await studio.server.client.get("/v1/tasks")).body.data.tasks;
    expect(readFileSync(await file.path(), "utf8")).to.equal(task.songs[0].lrc);
  });
});
