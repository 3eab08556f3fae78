/** Tests appearance, languages and the phone's tabs in the studio. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { LANGUAGES } from "../../../src/web/studio/language.js";
import { oneSecondSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const PHONE = { width: 390, height: 800 };
const STUDIO = fileURLToPath(new URL("../../../src/web/studio/", import.meta.url));
/** Matches the English texts in the studio's source code. */
const TEXT = /\bt\(\s*"((?:[^"\\]|\\.)*)"/g;

describe("the look of the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();

  it("the studio is light or dark like the system, or as the user chooses", async () => {
    const page = await studio.open();
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    const light = await ground();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await ground();
    expect(dark).not.to.equal(light);
    await button(page, "Appearance: as the system").click();
    await button(page, "Appearance: light").waitFor();
    expect(await ground()).to.equal(light);
    await page.reload();
    await button(page, "Appearance: light").click();
    expect(await ground()).to.equal(dark);
  });

  it("on a phone, the studio shows either the form or the songs; Make switches to the songs", async () => {
    const page = await studio.open();
    await page.setViewportSize(PHONE);
    await page.getByRole("heading", { name: "Songs" }).waitFor({ state: "hidden" });
    await page.getByLabel("Sound").fill("a tune for a phone");
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions").fill("1");
    await button(page, "Make").click();
    await page.getByRole("heading", { name: "Songs" }).waitFor();
    await page.getByLabel("Sound").waitFor({ state: "hidden" });
    await button(page, "Play a tune for a phone").waitFor();
    await button(page, "Make a song").click();
    await page.getByLabel("Sound").waitFor();
  });

  it("the Instrumental switch sends no lyrics, but keeps them in the form", async () => {
    const page = await studio.open();
    await page.getByLabel("Sound").fill("strings alone");
    await page.getByLabel("Lyrics").fill("la la");
    await page.getByRole("switch", { name: "Instrumental" }).check();
    expect(await page.getByLabel("Lyrics").isDisabled()).to.equal(true);
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions").fill("1");
    await page.getByRole("combobox", { name: "Model", exact: true }).selectOption("carillon-nano");
    await button(page, /^(Make|Add to queue)$/).click();
    await button(page, "Play strings alone").waitFor();
    const [task] = (await studio.server.client.get("/v1/tasks")).body.data.tasks;
    expect(task.parameters).to.include({ lyrics: "[Instrumental]", batch_size: 1, model: "carillon-nano" });
    await page.getByRole("switch", { name: "Instrumental" }).uncheck();
    expect(await page.getByLabel("Lyrics").inputValue()).to.equal("la la");
  });

  it("every text exists in every language, with the same placeholders", () => {
    const sources = readdirSync(STUDIO).filter((name) => /\.tsx?$/.test(name));
    const texts = sources.flatMap((name) =>
      [...readFileSync(STUDIO + name, "utf8").matchAll(TEXT)].map(([, text]) => text as string),
    );
    const wanted = [...new Set(texts)].toSorted();
    const placeholders = (text: string) => (text.match(/\{\w+\}/g) ?? []).toSorted();
    const files = readdirSync(`${STUDIO}languages`);
    expect(files.toSorted()).to.deep.equal(
      Object.keys(LANGUAGES)
        .filter((code) => code !== "en")
        .map((code) => `${code}.json`)
        .toSorted(),
    );
    for (const file of files) {
      const translated: Record<string, string> = JSON.parse(
        readFileSync(`${STUDIO}languages/${file}`, "utf8"),
      );
      expect(Object.keys(translated).toSorted(), file).to.deep.equal(wanted);
      for (const [text, words] of Object.entries(translated)) {
        expect(words, `${file}: ${text}`).not.to.equal("");
        expect(placeholders(words), `${file}: ${text}`).to.deep.equal(placeholders(text));
      }
    }
  });

  it("says notes, settings and errors of the service in the user's language", async () => {
    await studio.server.client.make({ ...oneSecondSong, prompt: "waltz at 75 bpm", bpm: 90 });
    const page = await studio.open("Online", "de-DE");
    await button(page, "Mehr zu waltz at 75 bpm").click();
    await page.getByText("Tempo 90 BPM wie eingestellt, obwohl dein Text „75 bpm“ sagt").waitFor();
    await page.locator(".card").getByText("Einstellungen", { exact: true }).click();
    await page.locator("dt", { hasText: "Schritte" }).waitFor();
    expect(await page.getByText('"inference_steps"').isVisible()).to.equal(false);
    await page.getByText("Rohdaten").click();
    await page.getByText('"inference_steps"').waitFor();

    const noise = { name: "noise.wav", mimeType: "audio/wav", buffer: Buffer.from("not a recording") };
    await page.getByLabel("Aufnahme zum Bearbeiten").setInputFiles(noise);
    await page.getByLabel("Klang", { exact: true }).fill("anders");
    await button(page, "Erzeugen").click();
    await page.getByText("Aufnahme zum Bearbeiten: keine lesbare Aufnahme").waitFor();
    studio.browserErrors.length = 0;
  });

  it("the studio uses the browser's language, or another that the user chooses", async () => {
    const page = await studio.open("Online", "de-AT");
    await button(page, "Erzeugen").waitFor();
    expect(await page.getByLabel("In einem Satz").getAttribute("placeholder")).to.equal(
      "ein Wiegenlied über das Meer",
    );
    await page.getByLabel("Sprache der Seite").selectOption("Français");
    await button(page, "Créer").waitFor();
    expect(await page.locator("html").getAttribute("lang")).to.equal("fr");
    await page.reload();
    await button(page, "Créer").waitFor();
  });
});
