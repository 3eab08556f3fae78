/** Values that the studio fills in: shown as chips, and weaker than typed words. Styles that are on. */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { writeLora } from "../adapter-files.js";
import { shortSong } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { button, effectsRun, Studio } from "./studio-fixture.js";

describe("what the studio fills in", function () {
  this.timeout(180_000);
  const folder = temporaryDirectory();
  const studio = new Studio({ SVC_TRAINING_ROOT: folder });
  const sound = (page: Page) => page.getByLabel("Sound", { exact: true });
  const chips = (page: Page) => page.getByRole("group", { name: "Filled in for you" });

  async function fillIn(page: Page): Promise<void> {
    await page.getByLabel("In one sentence").fill("a slow waltz in F major at 80 bpm");
    await button(page, "Write it").click();
    await chips(page).getByText("80 BPM").waitFor();
    await chips(page).getByText("F major").waitFor();
  }

  /** Presses Make and returns the parameters of the new task. */
  async function made(page: Page) {
    const { client } = studio.server;
    const total = async () => (await client.get("/v1/tasks")).body.data.total;
    const before = await total();
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await button(page, "Make").click();
    await page.getByText("Queued.").waitFor();
    expect(await total()).to.equal(before + 1);
    const [task] = (await client.get("/v1/tasks")).body.data.tasks;
    await client.finished(task.task_id);
    return (await client.get(`/v1/tasks/${task.task_id}`)).body.data;
  }

  it("a new prompt overrides filled values: techno at 130 bpm is made at 130", async () => {
    const page = await studio.open();
    await fillIn(page);
    await sound(page).fill("techno, 130 bpm");
    await chips(page).waitFor({ state: "detached" });
    const { songs, parameters } = await made(page);
    expect(parameters.key_scale ?? "").to.not.equal("F major");
    expect(songs[0].metas.bpm).to.equal(130);
  });

  it("a prompt that only states another tempo keeps the filled key; a cross removes a chip", async () => {
    const page = await studio.open();
    await fillIn(page);
    await sound(page).press("End");
    await sound(page).pressSequentially(", no, 95 bpm");
    await chips(page).getByText("80 BPM").waitFor({ state: "detached" });
    await chips(page).getByText("F major").waitFor();
    await sound(page).fill("a slow waltz in F major at 80 bpm");
    await button(page, "Remove F major").click();
    await chips(page).getByText("F major").waitFor({ state: "detached" });
    await page.getByText("Tempo, key, language").click();
    await page.getByLabel("Tempo BPM").fill("81");
    await chips(page).getByText("80 BPM").waitFor({ state: "detached" });
    expect(await page.getByLabel("Tempo BPM").inputValue()).to.equal("81");
  });

  it("says beforehand that the language model cannot polish", async () => {
    const page = await studio.open();
    await sound(page).fill("slow bossa nova");
    await page.getByText("carillon-nano/lm writes no text, so it cannot polish.").waitFor();
    expect(await button(page, "Polish").isDisabled()).to.equal(true);
  });

  it("clears the number of versions too", async () => {
    const page = await studio.open();
    await page.getByLabel("Versions", { exact: true }).fill("3");
    await button(page, "Clear").click();
    expect(await page.getByLabel("Versions", { exact: true }).inputValue()).to.equal("");
  });

  it("names a trained style as its user did, and shows in the form that it is on", async () => {
    const final = join(folder, "guitar style", "final");
    mkdirSync(final, { recursive: true });
    cpSync(writeLora(temporaryDirectory()), join(final, "adapter"), { recursive: true });
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    await button(page, "Load guitar style").click();
    await page.getByRole("checkbox", { name: "guitar style" }).waitFor();
    await page.getByText("Style: guitar style").waitFor();
    await button(page, "Remove Style: guitar style").click();
    await page.getByText("The style guitar style is off.").waitFor();
    await page.getByText("Style: guitar style").waitFor({ state: "detached" });
    expect(await page.getByRole("checkbox", { name: "guitar style" }).isChecked()).to.equal(false);
  });

  it("describes a song in a panel of its card, in words, and adds no song", async () => {
    const { client } = studio.server;
    const id = await client.submit({ ...shortSong, prompt: "a reel to describe" });
    await client.finished(id);
    const page = await studio.open();
    await button(page, "More of a reel to describe").click();
    const total = (await client.get("/v1/tasks?state=succeeded&analysis=false")).body.data.total;
    await button(page, "Describe").click();
    const panel = page.getByRole("region", { name: "Description of A reel to describe" });
    await button(panel, "Use description").waitFor();
    await panel.getByText("BPM").waitFor();
    expect(await panel.textContent()).to.not.match(/audio_code|status_message|[{}]/);
    await page.getByRole("heading", { name: `Songs ${total}`, exact: true }).waitFor();
    const [analysis] = (await client.get("/v1/tasks?analysis=true")).body.data.tasks;
    await button(panel, "Use description").click();
    await chips(page).getByText(`${analysis.analysis.bpm} BPM`).waitFor();
    await page.reload();
    await panel.getByText("BPM").waitFor();
    await button(panel, "Close").click();
    await panel.waitFor({ state: "detached" });
  });

  it("opens a shared link with the song and its settings, also on a phone", async () => {
    const { client } = studio.server;
    const id = await client.submit({ ...shortSong, prompt: "a shared reel", bpm: 99 });
    await client.finished(id);
    for (const width of [1280, 390]) {
      const page = await studio.open();
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${studio.server.url}/?song=${id}`);
      await button(page, "Play a shared reel").waitFor();
      await page.getByText("The settings of this song are in the form.").waitFor();
      if (width === 390) await button(page, "Make a song").click();
      expect(await sound(page).inputValue()).to.equal("a shared reel");
      await sound(page).fill("my own words");
      await effectsRun(page);
      await page.reload();
      await button(page, "Songs").or(button(page, "Play a shared reel")).first().waitFor();
      expect(await sound(page).inputValue()).to.equal("my own words");
    }
  });
});
