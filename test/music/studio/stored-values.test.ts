/** Tests the studio with values in the browser's storage that are damaged, of another version, or refused. */
import { expect } from "chai";
import { oneSecondSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const NAMES = ["draft", "playlists", "presets", "descriptions", "volume", "language", "theme", "radio"];
const DAMAGED = [
  "null",
  "[1]",
  '"words"',
  "{",
  '{"a":null}',
  '{"a":"words"}',
  '{"values":null,"filled":null}',
  '{"values":"words","filled":{"names":"words"}}',
  '{"values":{"prompt":{"a":1},"bpm":[],"lyrics":7},"sourceName":{},"filled":{}}',
];

describe("values that the browser keeps for the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();
  before(() => studio.server.client.make({ ...oneSecondSong, prompt: "kept tune" }));

  it("starts, plays and opens the presets with damaged values", async () => {
    const page = await studio.open();
    for (const damaged of DAMAGED) {
      await page.goto(`${studio.server.url}/studio/icon.svg`);
      await page.evaluate(
        ([names, value]) => {
          for (const name of names) {
            localStorage.setItem(`carillon-${name}`, value);
            sessionStorage.setItem(`carillon-${name}`, value);
          }
        },
        [NAMES, damaged] as const,
      );
      await page.goto(studio.server.url);
      await button(page, "Play kept tune").click();
      await page.getByRole("region", { name: "Player" }).getByText("Kept tune").waitFor();
      await page.getByLabel("Sound", { exact: true }).fill("new words");
      await page.locator("summary", { hasText: "Presets" }).click();
      await page.getByLabel("Name of the preset").waitFor();
      expect(studio.browserErrors, damaged).to.deep.equal([]);
    }
  });

  it("works when the browser refuses to store, and says so", async () => {
    const page = await studio.open();
    await page.addInitScript(() => {
      Storage.prototype.setItem = () => {
        throw new DOMException("full", "QuotaExceededError");
      };
    });
    await page.goto(studio.server.url);
    await page.getByText(/^This browser stores nothing more/).waitFor();
    await page.getByLabel("Page language").selectOption("de");
    await page.getByText("Neueste zuerst").waitFor({ state: "attached" });
    await page.locator("summary", { hasText: "Voreinstellungen" }).click();
    await page.locator("#preset-name").fill("leise");
    await button(page, "Als Voreinstellung speichern").click();
    await button(page, "leise").waitFor();
  });

  it("keeps a playlist under a name that objects have already", async () => {
    const page = await studio.open();
    for (const name of ["constructor", "__proto__"]) {
      await button(page, "Select").click();
      await page.locator(".made input[type=checkbox]").first().check();
      const menu = page.locator(".selection select");
      if ((await menu.count()) > 0) await menu.selectOption({ label: "New playlist" });
      await page.locator(".selection input[dir=auto]").fill(name);
      await button(page, "Add to playlist").click();
      await page.getByText(`Added to ${name}.`).waitFor();
      await page.locator("select[name=list]").selectOption(name);
      await button(page, "Play all").waitFor();
    }
  });
});
