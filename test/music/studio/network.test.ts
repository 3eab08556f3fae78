/** The studio on slow, broken and returning networks. */
import { expect } from "chai";
import type { Page, Route } from "playwright-core";
import { shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const LISTS = "**/v1/tasks?*";
const AUDIO = "**/v1/audio?*";

describe("the studio on a bad network", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const QUIET = { ...shortSong, audio_duration: 20 };

  before(async () => {
    for (const prompt of ["oldest tune", "middle tune", "newest tune"])
      await studio.server.client.make({ ...QUIET, prompt });
  });
  /** Opens the studio in a tab that can report which sounds are heard. */
  async function open(ready?: string): Promise<Page> {
    const page = await studio.open(ready);
    await page.addInitScript(`
      const { play } = HTMLMediaElement.prototype;
      const sounds = new Set();
      HTMLMediaElement.prototype.play = function () {
        sounds.add(this);
        return play.call(this);
      };
      window.countSounds = () => [...sounds].filter(({ paused }) => !paused).length;
    `);
    await page.reload();
    await button(page, "Play newest tune").waitFor();
    return page;
  }

  const sounds = (page: Page) => page.evaluate<number>("countSounds()");
  const player = (page: Page) => page.getByRole("region", { name: "Player" });

  it("a song that cannot be loaded stops the one before, says so, and loads once the network is back", async () => {
    const page = await open();
    await button(page, "Play newest tune").click();
    await button(page, "Pause newest tune").waitFor();
    await page.route(AUDIO, (route) => route.abort());
    await button(page, "Play middle tune").click();
    await player(page).getByText("The server cannot be reached. Press Play to try again.").waitFor();
    await page.locator(".card", { hasText: "Middle tune" }).getByText("Not loaded").waitFor();
    expect(await sounds(page)).to.equal(0);
    await page.unroute(AUDIO);
    await button(page, "Play").click();
    await button(page, "Pause middle tune").waitFor();
    expect(await sounds(page)).to.equal(1);

    await page.route(AUDIO, (route) => route.abort());
    await button(page, "Play oldest tune").click();
    await player(page).getByText("The server cannot be reached.").waitFor();
    await page.unroute(AUDIO);
    await button(page, "Play oldest tune").click();
    await button(page, "Pause oldest tune").waitFor();
    await player(page).getByText("Oldest tune").waitFor();
    studio.browserErrors.length = 0;
  });

  it("an action that did not reach the server says so until the server is back", async () => {
    const page = await open();
    await page.route("**/v1/tasks**", (route) => route.abort());
    await button(page, "Favourite newest tune").click();
    await page.locator(".notice").getByText("The server cannot be reached.").waitFor();
    await page.getByText("Offline: trying again").waitFor();
    await page.unroute("**/v1/tasks**");
    await page.getByText("Online", { exact: true }).waitFor();
    await page.locator(".notice p").waitFor({ state: "detached", timeout: 5000 });
    studio.browserErrors.length = 0;
  });

  it("says that it waits for a slow server; more presses of Make make no second song", async () => {
    const page = await open();
    await page.getByLabel("Sound", { exact: true }).fill("slow tune");
    const held: Route[] = [];
    await page.route("**/release_task", (route) => void held.push(route));
    await button(page, "Make").click();
    await page.getByText("Waiting for the server…").waitFor();
    await button(page, "Make").click();
    await button(page, "Make").click();
    await held[0]?.fulfill({ status: 503, contentType: "text/html", body: "<h1>Down</h1>" });
    await page.getByText("The server cannot do this now (503). Try again in a moment.").waitFor();
    await page.getByText("Waiting for the server…").waitFor({ state: "detached" });
    expect(held.length).to.equal(1);
    await page.unroute("**/release_task");
    await page.route("**/release_task", (route) => route.fulfill({ status: 200, body: "<h1>Log in</h1>" }));
    await button(page, "Make").click();
    await page.getByText("The server cannot do this now (200).").waitFor();
    studio.browserErrors.length = 0;
  });

  it("leaves out a song that was deleted elsewhere, and changes the other selected ones", async () => {
    const page = await open();
    const { client } = studio.server;
    const ids: string[] = [];
    for (const prompt of ["gone tune", "lost tune", "kept tune"]) {
      ids.push(await client.submit({ ...QUIET, prompt }));
      await button(page, `Play ${prompt}`).waitFor();
    }
    const [gone, lost, kept] = ids as [string, string, string];
    await button(page, "Select").click();
    for (const name of ["gone tune", "lost tune", "kept tune"])
      await page.getByLabel(`Select ${name}`).check();
    await client.delete(`/v1/tasks/${gone}?state=succeeded`);
    await page.getByText("2 selected").waitFor();
    // The page has not heard yet that this one is gone.
    await page.route(`**/v1/tasks/${lost}`, (route) => route.fulfill({ status: 404, json: {} }));
    await button(page, "Star").click();
    await page.getByText("Added to favourites.").waitFor();
    expect((await client.get(`/v1/tasks/${kept}`)).body.data.favorite).to.equal(true);
    studio.browserErrors.length = 0;
  });

  it("says that a song is loading; Play then asks for it again", async () => {
    const page = await open();
    let requests = 0;
    // The first request gets no answer.
    await page.route(AUDIO, (route) => ++requests > 1 && route.continue());
    await button(page, "Play newest tune").click();
    await player(page).getByText("Loading…").waitFor();
    await button(player(page), "Play").click();
    await button(page, "Pause newest tune").waitFor();
    expect(await sounds(page)).to.equal(1);
  });

  it("says that a song cannot be played, unless the browser waits for the first click", async () => {
    const page = await open();
    const refuse = (name: string) =>
      page.evaluate(`
        HTMLMediaElement.prototype.play = () => Promise.reject(new DOMException("refused", "${name}"));
      `);
    await refuse("NotAllowedError");
    await button(page, "Play newest tune").click();
    await player(page).getByText("0:00 / 0:20").waitFor();
    await button(page, "Play newest tune").waitFor();
    await refuse("NotReadableError");
    await button(page, "Play newest tune").click();
    await player(page).getByText("This song could not be loaded. Press Play to try again.").waitFor();
  });

  it("a server that stops while one song follows another is named on bar and card; Play goes on later", async () => {
    const page = await open();
    await page.getByRole("slider", { name: "Position in newest tune" }).click({ position: { x: 2, y: 5 } });
    await button(page, "Pause newest tune").waitFor();
    await studio.restart(async () => {
      await button(page, "Next song").click();
      await player(page).getByText("The server cannot be reached. Press Play to try again.").waitFor();
      await page.locator(".card", { hasText: "Middle tune" }).getByText("Not loaded").waitFor();
      expect(await sounds(page)).to.equal(0);
    });
    await page.getByText("Online", { exact: true }).waitFor();
    await page.getByText("cannot be reached").waitFor({ state: "detached" });
    await page.getByText("Not loaded").waitFor({ state: "detached" });
    await button(page, "Play").click();
    await button(page, "Pause middle tune").waitFor();
    studio.browserErrors.length = 0;
  });

  it("shows songs of a server that answers slowly, with one round of requests at a time", async () => {
    const page = await open();
    const held: Route[] = [];
    await page.route(LISTS, (route) => void held.push(route));
    await page.reload();
    await page.getByText("Connecting…").waitFor();
    const { client } = studio.server;
    // Each song is an event, which asks for the lists.
    await client.make({ ...shortSong, prompt: "a late tune" });
    await client.make({ ...shortSong, prompt: "a later tune" });
    expect(held.length).to.be.within(1, 4);
    for (const route of held.splice(0)) await route.continue();
    await button(page, "Play newest tune").waitFor();
    await page.getByText("Online", { exact: true }).waitFor();
    studio.browserErrors.length = 0;
  });

  it("keeps the last songs while the server does not answer, tries again, and shows new songs", async () => {
    const page = await open();
    await page.route("**/v1/**", (route) => route.abort());
    await page.getByLabel("Search songs").fill("late");
    await page.getByText("Offline: trying again").waitFor();
    await button(page, "Play newest tune").waitFor();
    await page.unroute("**/v1/**");
    await button(page, "Play a late tune").waitFor();
    await page.getByText("Online", { exact: true }).waitFor();
    studio.browserErrors.length = 0;
  });

  it("calls a server offline that accepts requests and never answers", async () => {
    const page = await open();
    await page.clock.install();
    await page.route("**/v1/**", () => {});
    await page.reload();
    await page.getByText("Connecting…").waitFor();
    await page.clock.fastForward(31_000);
    await page.getByText("Offline: trying again").waitFor();
    await page.unroute("**/v1/**");
    await page.clock.fastForward(20_000);
    await page.getByText("Online", { exact: true }).waitFor();
    studio.browserErrors.length = 0;
  });

  it("reads nothing while nothing changes, and shows what other programs do at once", async () => {
    const page = await open();
    const { client } = studio.server;
    let requests = 0;
    page.on("request", (request) => {
      if (request.url().includes("/v1/")) requests++;
    });
    await page.clock.install();
    await page.clock.fastForward(14_000);
    expect(requests).to.equal(0);
    await client.make({ ...shortSong, prompt: "made elsewhere" });
    await button(page, "Play made elsewhere").waitFor();
    const { tasks } = (await client.get("/v1/tasks?search=elsewhere")).body.data;
    await fetch(`${studio.server.url}/v1/tasks/${tasks[0].task_id}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ title: "Renamed elsewhere" }),
    });
    await button(page, "Play Renamed elsewhere").waitFor();
    await client.delete(`/v1/tasks/${tasks[0].task_id}?state=succeeded`);
    await button(page, "Play Renamed elsewhere").waitFor({ state: "detached" });
    studio.browserErrors.length = 0;
  });
});
