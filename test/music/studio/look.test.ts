/** Tests appearance, languages and the phone's tabs in the studio. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { LANGUAGES } from "../../../src/web/studio/language.js";
import { parameterName } from "../../../src/web/studio/parameters.js";
import { longSong, oneSecondSong } from "../live-server.js";
import { layoutFaults } from "./layout-faults.js";
import { fillLibrary } from "./many-songs.js";
import { button, effectsRun, Studio } from "./studio-fixture.js";

const PHONE = { width: 390, height: 800 };
/** Windows of a tablet, a desk, a wide screen, a desk at a zoom of 400 %, and a phone on its side and upright. */
const WINDOWS = [
  { width: 820, height: 1180 },
  { width: 1440, height: 900 },
  { width: 2560, height: 1440 },
  { width: 360, height: 225 },
  { width: 844, height: 390 },
  PHONE,
];
/** Names of 40 and 120 letters, a word of 47 letters, Arabic, and short ones. */
const NAMES = [
  "a slow waltz for forty letters of a name",
  `the song of a hundred and twenty letters ${"la ".repeat(27)}`,
  "Donaudampfschifffahrtsgesellschaftskapitänslied",
  "أغنية هادئة عن البحر والليل والقمر الجميل",
  "short",
];
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
    await page.getByLabel("Sound", { exact: true }).fill("a tune for a phone");
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await page.evaluate(() => scrollTo(0, 500));
    await button(page, "Make").click();
    await page.getByRole("heading", { name: "Songs" }).waitFor();
    expect(await page.evaluate(() => scrollY)).to.equal(0);
    await page.getByLabel("Sound", { exact: true }).waitFor({ state: "hidden" });
    await button(page, "Play a tune for a phone").waitFor();
    await button(page, "Make a song").click();
    await page.getByLabel("Sound", { exact: true }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Songs" }).waitFor();
    await page.goBack();
    await page.getByLabel("Sound", { exact: true }).waitFor();
    await page.goForward();
    await page.getByRole("heading", { name: "Songs" }).waitFor();
  });

  it("the Instrumental switch sends no lyrics, but keeps them in the form", async () => {
    const page = await studio.open();
    await page.getByLabel("Sound", { exact: true }).fill("strings alone");
    await page.getByLabel("Lyrics", { exact: true }).fill("la la");
    await page.getByRole("switch", { name: "Instrumental" }).check();
    expect(await page.getByLabel("Lyrics", { exact: true }).isDisabled()).to.equal(true);
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await page.getByRole("combobox", { name: "Model", exact: true }).selectOption("carillon-nano");
    await button(page, /^(Make|Add to queue)$/).click();
    await button(page, "Play strings alone").waitFor();
    const [task] = (await studio.server.client.get("/v1/tasks")).body.data.tasks;
    expect(task.parameters).to.include({ lyrics: "[Instrumental]", batch_size: 1, model: "carillon-nano" });
    await page.getByRole("switch", { name: "Instrumental" }).uncheck();
    expect(await page.getByLabel("Lyrics", { exact: true }).inputValue()).to.equal("la la");
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

  it("explains every setting in every language", async () => {
    const page = await studio.open("Online", "de-DE");
    await page.getByText("Alle Einstellungen").click();
    await page.getByText("Schritte zum Entrauschen").waitFor();
    const shown = await page
      .locator(".settings .grid > div")
      .evaluateAll((fields) =>
        fields.map((field) => [
          field.querySelector("[name]")?.getAttribute("name"),
          field.querySelector(".help")?.textContent,
        ]),
      );
    const labels = await page
      .locator(".settings .grid > div label")
      .evaluateAll((fields) => fields.map((field) => field.firstElementChild?.textContent?.trim()));
    const inEnglish = shown.map(([name]) => parameterName(String(name)));
    // "Instrumental" and "Seed" are the same in German.
    expect(labels.filter((label, i) => label === inEnglish[i])).to.deep.equal([
      "Instrumental",
      "Seed",
      "Songs",
    ]);
    const explained = (file: string) => JSON.parse(readFileSync(`${STUDIO}help/${file}`, "utf8"));
    expect(explained("de.json")).to.deep.equal(Object.fromEntries(shown));
    const files = readdirSync(`${STUDIO}languages`);
    expect(readdirSync(`${STUDIO}help`)).to.have.members(files);
    for (const file of files) {
      expect(explained(file), file).to.have.all.keys(shown.map(([name]) => name));
      expect(Object.values(explained(file)), file).not.to.include("");
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

describe("the layout of the studio", function () {
  this.timeout(300_000);
  const studio = new Studio();
  let page: Page;
  let faults: Record<string, string[]>;

  before(async () => {
    const { client } = studio.server;
    const id = await client.submit({ ...oneSecondSong, prompt: "song 0", batch_size: 2, lyrics: "la la" });
    await client.finished(id);
    await studio.restart(() =>
      // The newest song, which the tests open, has the longest word.
      fillLibrary(studio.directory, id, 40, (number) => NAMES[(number + 3) % NAMES.length] as string),
    );
  });
  beforeEach(() => {
    faults = {};
  });
  afterEach(() => expect(faults).to.deep.equal({}));

  /** Looks for faults in windows of all sizes. */
  async function look(state: string): Promise<void> {
    for (const size of WINDOWS) {
      await page.setViewportSize(size);
      await effectsRun(page);
      const found = await layoutFaults(page);
      if (found.length > 0) faults[`${state}, ${size.width} px`] = found;
    }
  }

  async function open(locale: string): Promise<void> {
    page = await studio.open("Online", locale);
    await page.setViewportSize(PHONE);
  }

  /** Whether the waveform of the recording covers Make, on a phone that scrolls both to the same place. */
  async function coveredByWave(): Promise<boolean> {
    await page.setViewportSize(PHONE);
    return page.evaluate(() => {
      const make = document.querySelector(".submit .main") as Element;
      const wave = document.querySelector(".source .canvas") as Element;
      const { left, top, width, height } = make.getBoundingClientRect();
      scrollBy({ top: wave.getBoundingClientRect().top - top, behavior: "instant" });
      if (Math.abs(wave.getBoundingClientRect().top - make.getBoundingClientRect().top) > 2)
        throw new Error("the page does not scroll that far");
      return document.elementFromPoint(left + width / 2, top + height / 2) !== make;
    });
  }

  const first = (pattern: RegExp) => button(page, pattern).first();

  it("form, songs, player, menu, editor and models fit, and nothing covers or cuts them", async () => {
    await open("de-DE");
    await look("form");
    await first(/^Songs/).click();
    await first(/abspielen$/).click();
    await page.locator(".library [aria-expanded]").first().click();
    await page.locator(".details").waitFor();
    await look("player and menu");
    expect(await page.locator(".details").count()).to.equal(1);
    await button(page, "Bearbeiten").first().click();
    await page.locator(".source").waitFor();
    await look("editor and notice");
    expect(await coveredByWave(), "the waveform lies above Make").to.equal(false);
    await page.getByText("Modelle und Adapter").click();
    await page.getByText("Platz 1").waitFor();
    await look("models");
    await button(page, "Zurück zu den Songs").click();
    await first(/^Songs/).click();
    await page.locator(".library [aria-expanded=false]").first().click();
    await button(page, "Bearbeiten").first().click();
    await page.locator(".source .time").getByText("0:01").waitFor();
  });

  it("a phone with large letters needs no scrolling sideways, and a card shows all its controls", async () => {
    await open("de-DE");
    await page.addStyleTag({ content: "html { font-size: 200% }" });
    const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(await widths(), "form").to.deep.equal([390, 390]);
    await first(/^Songs/).click();
    await first(/abspielen$/).click();
    await page.locator(".library [aria-expanded]").first().click();
    await page.locator(".details").waitFor();
    expect(await widths(), "songs").to.deep.equal([390, 390]);
    await button(page, "Bearbeiten").first().click();
    await page.locator(".source").waitFor();
    expect(await widths(), "editor").to.deep.equal([390, 390]);
    await page.setViewportSize({ width: 1440, height: 900 });
    await effectsRun(page);
    const faults = await layoutFaults(page);
    expect(faults.filter((fault) => /round star|outline|Mehr zu/.test(fault))).to.deep.equal([]);
  });

  it("models have a place of their own in the header, and the first press of Tab skips to the songs", async () => {
    await open("en-US");
    await page.getByRole("link", { name: "Models and adapters" }).click();
    await page.getByRole("heading", { name: "Models and adapters" }).waitFor();
    await page.reload();
    await page.getByLabel("Slot 1").waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Models and adapters" }).waitFor({ state: "detached" });
    await page.reload();
    await page.getByLabel("Sound", { exact: true }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.id === "library-title");
  });

  it("songs with one key and tempo have different covers", async () => {
    const { client } = studio.server;
    for (const seed of [11, 12]) {
      const same = { key_scale: "C major", bpm: 100, use_random_seed: false, seed };
      await client.make({ ...oneSecondSong, ...same, prompt: `one key ${seed}` });
    }
    await open("en-US");
    await first(/^Songs/).click();
    await button(page, "Play one key 12").waitFor();
    const covers = await page.evaluate(() =>
      [...document.querySelectorAll(".library svg.cover")].slice(0, 2).map((one) => one.outerHTML),
    );
    expect(covers[0]).not.to.equal(covers[1]);
  });

  it("all settings, selection, spectrogram, queue and failures fit too @slow", async () => {
    const { client } = studio.server;
    await open("en-US");
    // The page hides cancelled songs, which it recognizes by their error text.
    await page.route(/state=failed/, async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replaceAll("Cancelled by user", "Out of memory");
      await route.fulfill({ response, body });
    });
    for (const group of await page.locator(".composer summary").all()) await group.click();
    await page.getByLabel("Steps", { exact: true }).waitFor();
    await look("all settings");
    await first(/^Songs/).click();
    await button(page, "Select").click();
    await page
      .getByLabel(/^Select /)
      .first()
      .check();
    await look("selection");
    await first(/^Play /).click();
    await page.setViewportSize({ width: 1440, height: 900 });
    await button(page, "Spectrogram of the song that plays").click();
    await look("spectrogram");
    const ids: string[] = [];
    for (const name of NAMES) ids.push(await client.submit({ ...longSong, prompt: name }));
    await page.getByText("Waiting, place 4").waitFor();
    await look("queue");
    for (const id of ids.toReversed()) await client.delete(`/v1/tasks/${id}`);
    await button(page, "Try again").first().waitFor();
    await look("failures");
  });
});
