/** Order, playlists and links of the studio's library. */
import type { Page } from "playwright-core";
import { oneSecondSong } from "../live-server.js";
import { button, PAGE_WIDTHS, Studio } from "./studio-fixture.js";

describe("the studio's library and playlists", function () {
  this.timeout(180_000);
  const studio = new Studio();
  before(async () => {
    for (const prompt of ["banjo", "accordion", "cello"])
      await studio.server.client.make({ ...oneSecondSong, prompt });
  });

  async function shows(page: Page, wanted: string[]): Promise<void> {
    await page.waitForFunction(
      (all) =>
        [...document.querySelectorAll(".library .name")].map((name) => name.textContent).join() === all,
      wanted.join(),
    );
  }

  it("sorts by age and by title", async () => {
    const page = await studio.open();
    await shows(page, ["cello", "accordion", "banjo"]);
    await page.getByLabel("Sort").selectOption("oldest");
    await shows(page, ["banjo", "accordion", "cello"]);
    await page.getByLabel("Sort").selectOption("title");
    await shows(page, ["accordion", "banjo", "cello"]);
  });

  for (const [width, place] of PAGE_WIDTHS) {
    it(`keeps songs of a playlist in the user's order, ${place}`, async () => {
      const page = await studio.open();
      await page.setViewportSize({ width, height: 800 });
      if (width === 390) await button(page, "Songs").click();
      await button(page, "Select").click();
      for (const song of ["cello", "banjo"]) await page.getByLabel(`Select ${song}`).check();
      await page.getByLabel("Playlist").fill("Strings");
      await button(page, "Add to playlist").click();
      await page.getByText("Added to Strings.").waitFor();

      await page.reload();
      if (width === 390) await button(page, "Songs").click();
      await page.locator("select[name=list]").selectOption("Strings");
      await shows(page, ["cello", "banjo"]);
      await page.getByLabel("Move banjo: arrow up, arrow down").press("ArrowUp");
      await shows(page, ["banjo", "cello"]);
      await page.getByLabel("Move banjo: arrow up, arrow down").dragTo(button(page, "Play cello"));
      await shows(page, ["cello", "banjo"]);
      await button(page, "Remove cello from the playlist").click();
      await shows(page, ["banjo"]);
      await page.locator("select[name=list]").selectOption("");
      await shows(page, ["cello", "accordion", "banjo"]);
    });
  }

  it("opens a song by its link", async () => {
    const page = await studio.open();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await button(page, "More of banjo").click();
    await page.getByRole("link", { name: "Copy link" }).click();
    await page.getByText("The link is copied.").waitFor();
    await page.goto(await page.evaluate(() => navigator.clipboard.readText()));
    await page.getByRole("heading", { name: "banjo" }).waitFor();
    await page.getByRole("link", { name: "Open in the studio" }).click();
    await shows(page, ["banjo"]);
    await page.locator("select[name=list]").selectOption("");
    await shows(page, ["cello", "accordion", "banjo"]);
  });
});
