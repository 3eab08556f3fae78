/** Tests song cards, the player's controls, and actions on several songs. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { longSong, shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

describe("the player of the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const QUIET = { ...shortSong, audio_duration: 20 };

  before(async () => {
    for (const prompt of ["oldest tune, with a long description", "middle tune", "newest tune"])
      await studio.server.client.make({ ...QUIET, prompt });
  });

  /** Position that the player shows, in seconds. */
  async function seconds(page: Page): Promise<number> {
    const [, minutes, rest] =
      /(\d+):(\d\d)/.exec((await page.locator(".player .facts").textContent()) ?? "") ?? [];
    return Number(minutes) * 60 + Number(rest);
  }

  it("a card shortens a long prompt to a title; a click in its waveform plays from there", async () => {
    const page = await studio.open();
    await button(page, "Play oldest tune").waitFor();
    const outline = page.getByRole("slider", { name: "Position in middle tune" });
    const box = await outline.boundingBox();
    if (box === null) throw new Error("no waveform");
    await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
    await button(page, "Pause middle tune").waitFor();
    expect(await seconds(page)).to.be.within(14, 20);
    await button(page, "Pause middle tune").click();
    await button(page, "Play middle tune").waitFor();
    await outline.focus();
    const before = await seconds(page);
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((limit) => {
      const text = document.querySelector(".player .facts")?.textContent ?? "";
      return Number(/:(\d\d)/.exec(text)?.[1]) < limit;
    }, before - 2);
  });

  it("the player steps to the next and the previous song, pauses with Space, and keeps its volume", async () => {
    const page = await studio.open();
    await button(page, "Play newest tune").click();
    await button(page, "Next song").click();
    await button(page, "Pause middle tune").waitFor();
    await button(page, "Previous song").click();
    await button(page, "Pause newest tune").waitFor();
    await page.waitForFunction(() => navigator.mediaSession.metadata?.title === "newest tune");
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press("Space");
    await button(page, "Play newest tune").waitFor();
    await page.getByLabel("Volume").fill("0.3");
    await page.reload();
    await button(page, "Play newest tune").click();
    expect(await page.getByLabel("Volume").inputValue()).to.equal("0.3");
  });

  it("a song's menu has groups with icons, the common actions first, and Delete apart", async () => {
    const page = await studio.open();
    await button(page, "More of newest tune").click();
    const rows = page.locator(".details > .actions");
    const words = await rows.evaluateAll((groups) =>
      groups.map((group) => [...group.querySelectorAll("button, a")].map((action) => action.textContent)),
    );
    expect(words).to.deep.equal([
      ["Vary", "Use settings", "Make again"],
      ["Edit", "Download", "Use as reference", "Describe"],
      ["Rename", "Copy link", "Save settings", "Delete"],
    ]);
    for (const action of await rows.locator("button, a").all())
      expect(await action.locator(".icon").count(), (await action.textContent()) ?? "").to.equal(1);
    const edges = await rows
      .last()
      .evaluate((group) => [...group.children].map((action) => action.getBoundingClientRect().x));
    const [rename = 0, , save = 0, remove = 0] = edges;
    expect(remove - save).to.be.above(save - rename);
  });

  it("the sleep timer pauses the song", async () => {
    const page = await studio.open();
    await page.clock.install();
    await button(page, "Play newest tune").click();
    await button(page, "Pause newest tune").waitFor();
    await page.getByLabel("Sleep timer").selectOption("Stop after 15 min");
    // The page sets its timer after it has drawn the choice, and draws in timers, too.
    await page.clock.runFor(500);
    await page.clock.fastForward("15:00");
    await page.clock.runFor(500);
    await button(page, "Play newest tune").waitFor();
    expect(await page.getByLabel("Sleep timer").inputValue()).to.equal("0");
    expect(await seconds(page)).to.be.below(10);
  });

  it("a press of Next song counts even before the page has painted the first song", async () => {
    const page = await studio.open();
    await button(page, "Play newest tune").evaluate(async (play: HTMLElement) => {
      play.click();
      // The page renders in a microtask, and its effects run after the next frame.
      for (let turns = 0; turns < 10; turns++) await Promise.resolve();
      document.querySelector<HTMLElement>("[aria-label='Next song']")?.click();
    });
    const playing = button(page, /^Pause (newest|middle) tune$/);
    await playing.waitFor();
    expect(await playing.getAttribute("aria-label")).to.equal("Pause middle tune");
  });

  it("several selected songs are made favourites, downloaded as a zip, and deleted", async () => {
    const page = await studio.open();
    await button(page, "Select").click();
    await page.getByLabel("Select newest tune").check();
    await page.getByLabel("Select middle tune").check();
    await button(page, "Star").click();
    await page.getByText("Added to favourites.").waitFor();
    const favorites = (await studio.server.client.get("/v1/tasks?favorite=true")).body.data.total;
    expect(favorites).to.equal(2);

    await button(page, "Select").click();
    await page.getByLabel("Select newest tune").check();
    await page.getByLabel("Select middle tune").check();
    const download = page.waitForEvent("download");
    await button(page, "Download zip").click();
    const zip = readFileSync(await (await download).path()).toString("latin1");
    expect(zip.startsWith("PK")).to.equal(true);
    expect(zip).to.include("newest tune.wav").and.to.include("middle tune.wav");

    await button(page, "Delete selected").click();
    await button(page, "Delete 2 for good").click();
    await page.getByRole("heading", { name: "Songs 1", exact: true }).waitFor();
    await page.waitForFunction(() => document.activeElement?.id === "library-title");
  });

  it("the page shows only part of a long queue, and can cancel all of it", async () => {
    const { client } = studio.server;
    for (let number = 1; number <= 8; number++)
      await client.submit({ ...longSong, prompt: `waiting ${number}` });
    const page = await studio.open();
    await button(page, "Show 3 more").click();
    await button(page, "Cancel waiting 8").waitFor();
    await button(page, "Cancel all").click();
    await page.getByRole("heading", { name: "Queue" }).waitFor({ state: "detached" });
  });
});
