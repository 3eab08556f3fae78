/** The studio in a real browser, before a real server that makes real songs. */
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../browser.js";
import { type LiveServer, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

describe("the studio", function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  let browser: Browser;
  let server: LiveServer;
  let page: Page;
  let complaints: string[];

  before(async () => {
    browser = await launchBrowser();
    server = await startLiveServer(directory);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  beforeEach(async () => {
    complaints = [];
    page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
    page.setDefaultTimeout(60_000);
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(server.url);
    await page.getByText("Online").waitFor();
  });
  afterEach(async () => {
    await page.close();
    expect(complaints).to.deep.equal([]);
  });

  const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
  const songs = () =>
    page
      .getByRole("list")
      .filter({ has: button(/^Favourite/) })
      .getByRole("listitem");

  /** Asks for a song of 10 s and one step; resolves once it is queued. */
  async function make(sound: string): Promise<void> {
    await page.getByLabel("Sound").fill(sound);
    await settle();
    await button(/^(Make|Add to queue)$/).click();
    await page.getByText("Queued.").waitFor();
    await button("Close message").click();
  }

  /** The quickest settings there are. */
  async function settle(): Promise<void> {
    const length = page.getByLabel("Length s");
    if (!(await length.isVisible())) await page.getByText("Length, tempo, key").click();
    await length.fill("10");
    await page.getByLabel("Versions").fill("2");
    await page.getByText("All settings").click();
    await page.getByLabel("Inference steps").fill("1");
    await page.getByText("All settings").click();
  }

  it("makes a song, plays it and tells what it is made of", async () => {
    await page.getByText("No songs yet.").waitFor();
    expect(await button("Make").isDisabled()).to.equal(true);
    await make("a slow waltz for two flutes");
    await button("Play a slow waltz for two flutes").click();
    await page.getByText(/\d:\d\d \/ 0:10/).waitFor();
    await button("Pause").click();
    await button("Version B").click();
    await button("Pause").waitFor();
    await button("More of a slow waltz for two flutes").click();
    expect(await page.getByRole("link", { name: "Download" }).count()).to.equal(3);
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download" }).first().click();
    expect((await download).suggestedFilename()).to.match(/\.mp3$/);
    await button("Vary").click();
    await page.getByText("Queued.").waitFor();
    await songs().nth(1).waitFor();
    const { tasks } = (await server.client.get("/v1/tasks")).body.data;
    const seeds = tasks.map((task: { songs: { seed: number }[] }) => task.songs[0]?.seed);
    expect(tasks[0].parameters).to.include({ prompt: "a slow waltz for two flutes", inference_steps: 1 });
    expect(seeds[0]).not.to.equal(seeds[1]);
  });

  it("keeps names and favourites, finds songs, and deletes them for good", async () => {
    await button(/^More of/)
      .first()
      .click();
    await button("Rename").click();
    await page.getByLabel("Title").fill("Evening");
    await button("Save").click();
    await button("Favourite Evening").click();
    await button(/Favourites$/).click();
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    await button(/Favourites$/).click();
    await page.getByRole("heading", { name: "Songs 2" }).waitFor();
    await page.getByLabel("Search songs").fill("evening");
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    await page.getByLabel("Search songs").fill("nothing of the kind");
    await page.getByText("Nothing fits.").waitFor();
    await page.getByLabel("Search songs").fill("");
    await button(/^More of a slow waltz/).click();
    await button("Delete").last().click();
    await button("Delete for good").click();
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    expect((await server.client.get("/v1/tasks")).body.data.total).to.equal(1);
  });

  it("cancels a song that is being made", async () => {
    await server.client.submit({
      prompt: "an endless song",
      audio_duration: 600,
      inference_steps: 20,
      batch_size: 8,
    });
    await page.getByLabel("Progress of an endless song").waitFor();
    await button("Cancel an endless song").click();
    await page.getByText("Cancelled by user").waitFor();
    await button("Dismiss an endless song").click();
    await page.getByRole("heading", { name: "Queue" }).waitFor({ state: "detached" });
  });
});
