/** Order, playlists and links of the studio's library. */
import { expect } from "chai";
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
      await page.getByLabel("Name of the playlist").fill("Strings");
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

  it("selects all songs, or with Shift those from one to another, and keeps playlists from a menu", async () => {
    const page = await studio.open();
    await button(page, "Select").click();
    await button(page, "Select all").click();
    await page.getByText("3 selected").waitFor();
    await page.getByLabel("Name of the playlist").fill("All");
    await button(page, "Add to playlist").click();
    await page.getByText("Added to All.").waitFor();
    await button(page, "Select").click();
    await page.getByLabel("Select accordion").click();
    await page.getByLabel("Select banjo").click({ modifiers: ["Shift"] });
    await page.getByText("2 selected").waitFor();
    await page.locator(".selection form select").selectOption("New playlist");
    await page.getByLabel("Name of the playlist").fill("Folk");
    await button(page, "Add to playlist").click();

    await page.locator("select[name=list]").selectOption("Folk");
    await shows(page, ["accordion", "banjo"]);
    await button(page, "Play all").click();
    await button(page, "Pause accordion").waitFor();
    await button(page, "Shuffle").click();
    await page.locator("[aria-label^='Move ']").first().waitFor({ state: "detached" });
    await page.locator(".library .name").nth(1).waitFor();
    const bar = page.getByRole("toolbar", { name: "Playlist Folk" });
    await button(bar, "Rename").click();
    await page.getByLabel("Name of the playlist").fill("All");
    await button(page, "Save").click();
    await page.getByText("There is a playlist All already.").waitFor();
    await page.getByLabel("Name of the playlist").fill("ألحان");
    await button(page, "Save").click();
    const renamed = page.getByRole("toolbar", { name: /ألحان/ });
    await renamed.locator("button:focus", { hasText: "Rename" }).waitFor();
    await button(renamed, "Delete").click();
    await button(renamed, /^Delete the playlist/).click();
    await shows(page, ["cello", "accordion", "banjo"]);
    expect(await page.locator("select[name=list] option").allTextContents()).to.deep.equal([
      "All songs",
      "All",
    ]);
  });

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
