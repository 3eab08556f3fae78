/** The library of the studio: many songs, several tabs, deletion during playback. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { longSong, oneSecondSong, shortSong } from "../live-server.js";
import { fillLibrary } from "./many-songs.js";
import { button, effectsRun, Studio } from "./studio-fixture.js";

const SONGS = 2000;

describe("songs in the studio's library", function () {
  this.timeout(180_000);

  describe("the studio's library with 2,000 songs", () => {
    const studio = new Studio();

    before(async () => {
      const id = await studio.server.client.submit({ ...oneSecondSong, prompt: "song 0" });
      await studio.server.client.finished(id);
      await studio.restart(() => fillLibrary(studio.directory, id, SONGS));
    });

    const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

    it("opens with less than 90 kB over the wire", async () => {
      const page = await studio.open("Online", "de-DE");
      await button(page, "song 1999 abspielen").waitFor();
      const bytes = await page.evaluate(() => {
        const entries = performance.getEntries() as PerformanceResourceTiming[];
        return entries.reduce((sum, { transferSize }) => sum + (transferSize ?? 0), 0);
      });
      expect(bytes).to.be.within(20_000, 90_000);
    });

    it("asks for all that it needs to show in one round: six files, the connections of a browser", async () => {
      const page = await studio.open("Online", "de-DE");
      await button(page, "song 1999 abspielen").waitFor();
      const files = await page.evaluate(() => {
        const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
        return entries
          .filter(({ name, initiatorType }) => initiatorType !== "fetch" && !name.includes("icon"))
          .map(({ name }) => name);
      });
      expect(files.length, files.join("\n")).to.be.within(4, 6);
      expect(files.filter((name) => name.endsWith("/de.json"))).to.have.lengthOf(1);
    });

    it("a phone that shows the form neither draws nor reads the songs below the first", async () => {
      const page = await studio.open();
      await page.setViewportSize({ width: 390, height: 844 });
      const reads: string[] = [];
      await page.reload({ waitUntil: "commit" }); // requests of the page before, which was wide, do not count
      page.on("request", (request) => reads.push(request.url()));
      await page.getByText("Online").waitFor();
      await effectsRun(page);
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await page.waitForFunction(() => scrollY > 100);
      for (let frame = 0; frame < 10; frame++) await effectsRun(page);
      expect(reads.filter((url) => /offset=[1-9]/.test(url))).to.deep.equal([]);
      expect(await elements(page)).to.be.below(2500);
    });

    it("the library draws only the songs in view, and searches on the server", async () => {
      const page = await studio.open();
      await page.getByRole("heading", { name: "Songs 2000" }).waitFor();
      await button(page, "Play song 1999").waitFor();
      expect(await elements(page)).to.be.below(2500);
      const scroll = (part: number) =>
        page.evaluate((to) => scrollTo(0, to * document.documentElement.scrollHeight), part);
      await scroll(0.5);
      await button(page, /^Play song (9[5-9]|10[0-4])\d$/)
        .first()
        .waitFor();
      await scroll(1);
      await button(page, "Play song 0").waitFor();
      expect(await button(page, "Play song 1999").count()).to.equal(0);
      expect(await elements(page)).to.be.below(2500);
      await scroll(0);
      await button(page, "Play song 1999").waitFor();
      await page.getByLabel("Search songs").fill("song 1711");
      await page.getByRole("heading", { name: "Songs 1", exact: true }).waitFor();
      await button(page, "Play song 1711").waitFor();
      await page.getByLabel("Search songs").fill("");
      await button(page, "Play song 1999").waitFor();
    });

    it("rows have the chosen language, also if the page changes while its texts load", async () => {
      const page = await studio.open();
      await page.route("**/studio/languages/de.json", async (route) => {
        await page.getByLabel("Search songs").fill("song 1999");
        await page.getByRole("heading", { name: "Songs 1", exact: true }).waitFor();
        await route.continue();
      });
      await page.getByLabel("Page language").selectOption("de");
      await button(page, "song 1999 abspielen").waitFor();
    });

    it("frees the cards of searches and languages before", async () => {
      const page = await studio.open();
      const session = await page.context().newCDPSession(page);
      await session.send("Performance.enable");
      const nodes = async () => {
        await session.send("HeapProfiler.collectGarbage");
        const { metrics } = await session.send("Performance.getMetrics");
        return metrics.find(({ name }) => name === "Nodes")?.value ?? Number.NaN;
      };
      const round = async () => {
        await page.getByLabel("Page language").selectOption("de");
        await button(page, "song 1999 abspielen").waitFor();
        await page.locator("select.language").selectOption("en");
        await button(page, "Play song 1999").waitFor();
        await page.getByLabel("Search songs").fill("nothing");
        await page.getByText("No songs match.").waitFor();
        await page.getByLabel("Search songs").fill("");
        await button(page, "Play song 1999").waitFor();
      };
      await round();
      const before = await nodes();
      for (let count = 0; count < 5; count++) await round();
      expect(await nodes()).to.be.below(before + 500);
    });

    it("songs stay under the pointer while a song is queued, made and added above them", async () => {
      const page = await studio.open();
      const play = button(page, "Play song 1995");
      await play.hover();
      const top = () => play.evaluate((element) => element.getBoundingClientRect().top);
      const before = await top();
      const id = await studio.server.client.submit({ ...longSong, prompt: "in the queue" });
      await page.getByLabel("Progress of in the queue").waitFor({ state: "attached" });
      expect(await top()).to.be.closeTo(before, 2);
      await studio.server.client.delete(`/v1/tasks/${id}`);
      await page.getByRole("heading", { name: "Queue" }).waitFor({ state: "detached" });
      expect(await top()).to.be.closeTo(before, 2);
      await studio.server.client.make({ ...oneSecondSong, prompt: "a new one" });
      await page.getByRole("heading", { name: "Songs 2001" }).waitFor();
      expect(await top()).to.be.closeTo(before, 2);
    });

    it("says that a new song has arrived out of sight, also in the title, and shows it", async () => {
      const page = await studio.open();
      await button(page, "Play song 1999").waitFor();
      await page.evaluate(() => scrollTo(0, 20_000));
      await button(page, /^Play song 17\d\d$/)
        .first()
        .waitFor();
      await studio.server.client.make({ ...oneSecondSong, prompt: "نسيم" });
      await page.getByText("New song: ").waitFor();
      await page.waitForFunction(() => document.title.includes("نسيم"));
      await button(page, "Show").click();
      await page.waitForFunction(() => document.title === "Carillon");
      const name = page.locator(".card .name", { hasText: "نسيم" });
      await name.waitFor();
      // Arabic names begin where the facts below them begin.
      const left = await name.evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        const card = element.closest(".card")?.querySelector(".facts");
        return range.getBoundingClientRect().left - (card?.getBoundingClientRect().left ?? 0);
      });
      expect(Math.abs(left)).to.be.below(2);
    });
  });

  describe("the studio's library in two tabs", () => {
    const studio = new Studio();
    let one: Page;
    let two: Page;

    beforeEach(async () => {
      await studio.server.client.make({ ...shortSong, prompt: "an old tune", audio_duration: 30 });
      one = await studio.open();
      two = await studio.openTab(await one.context().newPage());
    });

    it("a tab shows titles, favourites and deletions of the other tab, and stops a deleted song", async () => {
      await button(two, "Play an old tune").click();
      await button(two, "Pause").waitFor();
      await button(one, "Favourite an old tune").click();
      await two.locator("button[aria-label='Favourite an old tune'][aria-pressed=true]").waitFor();
      await button(one, "More of an old tune").click();
      await button(one, "Rename").click();
      const title = one.getByLabel("Title", { exact: true });
      await title.fill("Evening");
      await one.route("**/v1/tasks/*", (route) => route.abort(), { times: 1 });
      await button(one, "Save").click();
      await one.getByText("The server cannot be reached").first().waitFor();
      expect(await title.inputValue(), "after a failure").to.equal("Evening");
      studio.browserErrors.length = 0;
      await button(one, "Save").click();
      await button(two, "Pause Evening").waitFor();
      await two.getByRole("region", { name: "Player" }).getByText("Evening").waitFor();

      await button(one, "Delete").click();
      await button(one, "Delete for good").click();
      await two.getByText("Evening was deleted, so it no longer plays.").waitFor();
      await two.getByText("No songs yet.").waitFor();
      await two.getByRole("region", { name: "Player" }).waitFor({ state: "hidden" });
      await two.locator(".player [aria-label=Play]").waitFor({ state: "attached" });
      studio.browserErrors.length = 0;
    });
  });

  describe("the studio's library of four songs", () => {
    const studio = new Studio();

    before(async () => {
      for (const prompt of ["apple jazz", "berry jazz", "cherry tango", "dill tango"])
        await studio.server.client.make({ ...oneSecondSong, prompt });
    });

    it("deletes no song at a double click, and asks again after Escape and after a press elsewhere", async () => {
      const page = await studio.open();
      await button(page, "More of dill tango").click();
      await button(page, "Delete").dblclick();
      const sure = button(page, "Delete for good");
      await sure.click({ trial: true }); // waits until a press would delete the song
      await page.keyboard.press("Escape");
      await button(page, "Delete").click();
      await sure.click({ trial: true });
      await page.getByRole("heading", { name: "Songs 4", exact: true }).click();
      await button(page, "Delete").waitFor();

      await button(page, "Select").click();
      await button(page, "Select all").click();
      await page.getByText("4 selected").waitFor();
      await button(page, "Delete selected").dblclick();
      await button(page, "Delete 4 for good").click({ trial: true });
      await button(page, "Select all").click();
      await button(page, "Delete selected").waitFor();
      expect((await studio.server.client.get("/v1/tasks")).body.data.total).to.equal(4);
    });

    it("asks again before it deletes a song some time after the first press", async () => {
      const page = await studio.open();
      await page.clock.install();
      await button(page, "More of dill tango").click();
      await button(page, "Delete").click();
      await page.clock.runFor(1000);
      await button(page, "Delete for good").waitFor();
      await page.clock.runFor(9000);
      await button(page, "Delete").waitFor();
    });

    it("gives the focus back after a song is renamed or its menu is closed by keyboard", async () => {
      const page = await studio.open();
      const hasFocus = (name: string) =>
        page.waitForFunction(
          (label) => [document.activeElement?.ariaLabel, document.activeElement?.textContent].includes(label),
          name,
        );
      await button(page, "More of apple jazz").press("Enter");
      for (const key of ["Escape", "Enter"]) {
        await button(page, "Rename").press("Enter");
        await page.getByLabel("Title", { exact: true }).press(key);
        await page.getByLabel("Title", { exact: true }).waitFor({ state: "detached" });
        await hasFocus("Rename");
      }
      await page.keyboard.press("Escape");
      await button(page, "Rename").waitFor({ state: "detached" });
      await hasFocus("More of apple jazz");
    });

    it("leaves no gap above the songs when the queue disappears while a menu is open", async () => {
      const page = await studio.open();
      const gap = () =>
        page.evaluate(() => {
          const bottom = document.querySelector(".library")?.previousElementSibling?.getBoundingClientRect();
          const top = document.querySelector(".library > li")?.getBoundingClientRect();
          return (top?.top ?? 0) - (bottom?.bottom ?? 0);
        });
      await button(page, "More of dill tango").click();
      const before = await gap();
      const id = await studio.server.client.submit({ ...longSong, prompt: "in the queue" });
      await page.getByLabel("Progress of in the queue").waitFor();
      await page.evaluate(() => scrollTo(0, 30));
      await page.mouse.move(5, 5);
      await studio.server.client.delete(`/v1/tasks/${id}`);
      await page.getByRole("heading", { name: "Queue" }).waitFor({ state: "detached" });
      await effectsRun(page);
      expect(await gap()).to.be.closeTo(before, 2);
    });

    it("all songs state their age by one clock", async () => {
      const page = await studio.open();
      await page.clock.install();
      await page.reload();
      await button(page, "Play dill tango").waitFor();
      await page.clock.fastForward("10:00");
      await page.waitForFunction(() =>
        [...document.querySelectorAll(".card .facts")].every((facts) =>
          /1\d minutes ago/.test(facts.textContent ?? ""),
        ),
      );
    });

    it("a new search selects none of the songs before, and one that leaves the favourites is not selected", async () => {
      const page = await studio.open();
      for (const name of ["apple jazz", "berry jazz"]) {
        await button(page, `Favourite ${name}`).click();
        await page.locator(`[aria-label='Favourite ${name}'][aria-pressed=true]`).waitFor();
      }
      await button(page, "Select").click();
      await button(page, "Select all").click();
      await page.getByText("4 selected").waitFor();
      await page.getByLabel("Search songs").fill("tango");
      await page.getByRole("heading", { name: "Songs 2", exact: true }).waitFor();
      await page.getByText("0 selected").waitFor();
      await page.getByLabel("Search songs").fill("");
      await button(page, "★ Favourites").click();
      await button(page, "Play dill tango").waitFor({ state: "detached" });
      await button(page, "Select all").click();
      await page.getByText("2 selected").waitFor();
      await button(page, "Favourite apple jazz").click();
      await page.getByText("1 selected").waitFor();
    });
  });

  describe("the studio's library after a restart of the server", () => {
    const studio = new Studio();

    it("the library shows a song that is still being made, and can cancel it @slow", async () => {
      const page = await studio.open();
      await studio.server.client.submit({ ...longSong, prompt: "a long way" });
      await page.getByLabel("Progress of a long way").waitFor();
      await studio.restart(async () => {
        await page.getByText("Offline: trying again").waitFor();
      });
      await page.getByText("Online", { exact: true }).waitFor();
      await page.getByLabel("Progress of a long way").waitFor();
      await button(page, "Cancel a long way").click();
      await page.getByRole("heading", { name: "Queue" }).waitFor({ state: "detached" });
      studio.browserErrors.length = 0;
    });
  });
});
