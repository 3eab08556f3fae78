/** Tests the radio of the studio: endless songs from one description. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import type { TaskRow } from "../../../src/music/queue/task-row.js";
import { oneSecondSong, shortSong } from "../live-server.js";
import { button, checkLowPlayer, Studio } from "./studio-fixture.js";

describe("the radio of the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const CALM = { ...shortSong, prompt: "lo-fi, warm piano" };

  afterEach(async () => {
    for (const { task_id } of await made())
      await studio.server.client.delete(`/v1/tasks/${task_id}?state=succeeded`);
  });

  async function made(query = ""): Promise<TaskRow[]> {
    return (await studio.server.client.get(`/v1/tasks?state=succeeded${query}`)).body.data.tasks;
  }

  /** Opens the studio with a filled form and starts the radio. */
  async function listen(values: object): Promise<Page> {
    const page = await studio.open();
    await page.evaluate(
      (draft) => sessionStorage.setItem("carillon-draft", draft),
      JSON.stringify({ values }),
    );
    await page.reload();
    await button(page, "Radio").click();
    return page;
  }

  const status = (page: Page, text: string) =>
    page.getByRole("group", { name: "Radio" }).getByText(text).waitFor();
  const title = (page: Page) => page.evaluate(() => navigator.mediaSession.metadata?.title);

  it("makes one song ahead, keeps a song, makes more like it, and leaves no other song behind", async () => {
    const page = await listen(CALM);
    await button(page, "Pause").click();
    await status(page, "The next song is ready.");
    expect(await title(page)).to.equal("lo-fi");
    const [ahead, first] = await made();
    expect((await made()).length).to.equal(2);
    await page.getByText("No songs yet.").waitFor();

    await button(page, "Keep").click();
    await status(page, "The song is in your library.");
    await button(page, "Play lo-fi").waitFor();
    await button(page, "More like this").click();
    await status(page, "The next songs are like this one.");
    await page.waitForFunction(() => document.querySelector(".radio progress") === null);
    const [like] = await made();
    expect(like?.task_id).not.to.equal(ahead?.task_id);
    const { bpm, keyscale } = first?.songs[0]?.metas ?? {};
    expect(like?.parameters).to.include({ bpm, key_scale: keyscale });
    await button(page, "Skip").click();
    await button(page, "Pause").click();
    await status(page, "The next song is ready.");

    const before = (await made("&temporary=true")).map(({ task_id }) => task_id);
    expect(before).to.have.length(2).and.to.include(like?.task_id);
    await page.reload();
    await status(page, "The next song is ready.");
    expect((await made("&temporary=true")).map(({ task_id }) => task_id)).to.deep.equal(before);

    await button(page, "Close player").click();
    await page.getByRole("group", { name: "Radio" }).waitFor({ state: "detached" });
    while ((await made("&temporary=true")).length > 0);
    expect((await made()).map(({ task_id }) => task_id)).to.deep.equal([first?.task_id]);
  });

  it("keeps Pause and Skip in view in a low window", async () => {
    const page = await listen(CALM);
    await status(page, "The next song is ready.");
    await checkLowPlayer(page, button(page, "Pause"), button(page, "Skip"));
    await button(page, "Close player").click();
  });

  it("goes on by itself, and ends when the user plays a song of the library", async () => {
    await studio.server.client.make({ ...oneSecondSong, prompt: "a kept song" });
    const page = await listen({ ...oneSecondSong, prompt: "short ones" });
    const heard = new Set<string>();
    while (heard.size < 3) {
      for (const { task_id } of await made("&temporary=true")) heard.add(task_id);
      expect((await made("&temporary=true")).length).to.be.below(4);
    }
    await button(page, "Play a kept song").click();
    await page.getByRole("group", { name: "Radio" }).waitFor({ state: "detached" });
    while ((await made("&temporary=true")).length > 0);
    // A song may be made just before the page cancels it.
    studio.browserErrors.length = 0;
  });

  it("the song plays on while the next one is late or the server is gone, and the page says so", async () => {
    const page = await listen({ ...CALM, audio_duration: 30 });
    await status(page, "The next song is ready.");
    let send = () => {};
    const held = new Promise<void>((resolve) => {
      send = resolve;
    });
    await page.route("**/release_task", async (route) => {
      await held;
      await route.abort();
    });
    await button(page, "Skip").click();
    await status(page, "The next song is being made.");
    await button(page, "Skip").click();
    await status(page, "The next song is not ready yet. It plays as soon as it is made.");
    await button(page, "Pause").waitFor();
    send();
    await status(page, "The server cannot be reached. The radio tries again.");
    await button(page, "Pause").waitFor();
    await page.unroute("**/release_task");
    await status(page, "The next song is ready.");
    await button(page, "Pause").waitFor();
    studio.browserErrors.length = 0;
  });
});
