/** Accessibility of the studio: axe checks and keyboard use. */
import axe from "axe-core";
import { expect } from "chai";
import type { Locator, Page } from "playwright-core";
import { longSong, oneSecondSong, shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const PHONE = { width: 390, height: 800 };
const DESKTOP = { width: 1200, height: 800 };

describe("the studio's accessibility", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const endless = { ...longSong, prompt: "an endless song" };

  /** Runs axe in light and dark mode, at phone and desktop size. In dark mode it checks only contrast. */
  async function audit(page: Page, state: string): Promise<void> {
    const found: Record<string, string[]> = {};
    for (const viewport of [PHONE, DESKTOP]) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme });
        const violations = await violationsOf(page, colorScheme === "dark" ? ["color-contrast"] : undefined);
        if (violations.length > 0) found[`${state}, ${viewport.width} wide, ${colorScheme}`] = violations;
      }
    }
    expect(found).to.deep.equal({});
  }

  /** Violations on a page. @param rules the rules to check; undefined: all */
  async function violationsOf(page: Page, rules?: string[]): Promise<string[]> {
    if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
    const options = rules === undefined ? {} : { runOnly: rules };
    const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as axe.AxeResults;
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${help}\n${html}\n${failureSummary}`),
    );
  }

  it("has no violations with an empty library", async () => {
    const page = await studio.open();
    await page.getByText("No songs yet.").waitFor();
    await audit(page, "empty");
  });

  it("has no violations with all settings open, and with models and adapters open @slow", async () => {
    const page = await studio.open();
    await page.getByText("Tempo, key, language").click();
    await page.getByText("Reference recording").click();
    await page.getByText("Audio codes").click();
    await page.getByText("All settings").click();
    await page.getByLabel("Steps", { exact: true }).waitFor();
    await audit(page, "all settings");
    await page.getByText("Models and adapters").click();
    await page.getByLabel("Slot 1").waitFor();
    await audit(page, "models and adapters");
  });

  it("has no violations with running, queued and failed songs @slow", async () => {
    const { client } = studio.server;
    const page = await studio.open();
    // The page recognizes cancelled songs by their error text and hides them. With another text they show as failed.
    await page.route(/state=failed/, async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replaceAll("Cancelled by user", "Out of memory");
      await route.fulfill({ response, body });
    });
    const id = await client.submit(endless);
    const next = await client.submit({ ...endless, prompt: "the next one" });
    try {
      await page.getByLabel("Progress of an endless song").waitFor();
      await page.getByText("Next", { exact: true }).waitFor();
      await audit(page, "busy");
    } finally {
      await client.delete(`/v1/tasks/${next}`);
      await client.delete(`/v1/tasks/${id}`);
    }
    await button(page, "Try again").first().waitFor();
    await audit(page, "failed");
    await button(page, "Clear failed").click();
    await button(page, "Try again").first().waitFor({ state: "detached" });
  });

  it("has no violations with a playing song, its details, plan, spectrogram and editor @slow", async () => {
    await studio.server.client.make({
      ...shortSong,
      thinking: true,
      batch_size: 2,
      lyrics: "[Verse]\nla la",
    });
    const page = await studio.open();
    await button(page, "Play a short song").click();
    await button(page, "Pause").waitFor();
    await button(page, "Spectrogram of the song that plays").click();
    await button(page, "More of a short song").click();
    await page.getByText("Plan A", { exact: true }).click();
    await page.getByText("50 for 0:10").waitFor();
    await audit(page, "details");
    await button(page, "Rename").click();
    await button(page, "Delete").click();
    await audit(page, "renaming");
    await button(page, "Edit").first().click();
    await page.locator(".source").getByText("0:10", { exact: true }).waitFor();
    await audit(page, "editor");
  });

  it("has no violations while songs are selected @slow", async () => {
    await studio.server.client.make({ ...oneSecondSong, prompt: "a chosen song" });
    const page = await studio.open();
    await button(page, "Select").click();
    await page.getByLabel("Select a chosen song").check();
    await audit(page, "selection");
  });

  it("has no violations offline @slow", async () => {
    const page = await studio.open();
    await studio.restart(async () => {
      await page.getByText("Offline: trying again").waitFor();
      await audit(page, "offline");
    });
    studio.browserErrors.length = 0;
  });

  describe("a studio that asks for a key", () => {
    const locked = new Studio({ SVC_API_KEY: "open sesame" });

    it("has no violations in the key prompt", async () => {
      const page = await locked.open("This server asks for a key");
      await audit(page, "locked");
      locked.browserErrors.length = 0;
    });
  });

  it("lets the user write, make, play and delete a song by keyboard", async () => {
    const page = await studio.open();
    /** Presses Tab until a control has focus. Fails if the player hides the control. */
    const tabTo = async (target: Locator) => {
      await target.waitFor();
      for (let presses = 0; presses < 150; presses++) {
        await page.keyboard.press("Tab");
        if (!(await target.evaluate((element) => element === document.activeElement))) continue;
        await target.click({ trial: true });
        return;
      }
      throw new Error(`Tab does not reach ${target}`);
    };

    await tabTo(page.getByLabel("Sound", { exact: true }));
    await page.keyboard.type("keys alone");
    await tabTo(page.getByLabel("Length s"));
    await page.keyboard.type("10");
    await tabTo(page.getByLabel("Versions", { exact: true }));
    await page.keyboard.type("1");
    await tabTo(button(page, "Make"));
    await page.keyboard.press("Enter");
    await tabTo(button(page, "Play keys alone"));
    await page.keyboard.press("Enter");
    await button(page, "Pause").waitFor();
    await tabTo(button(page, "More of keys alone"));
    await page.keyboard.press("Enter");
    await tabTo(button(page, "Delete"));
    await page.keyboard.press("Enter");
    await button(page, "Delete for good").click({ trial: true });
    await page.keyboard.press("Enter");
    await button(page, "Play keys alone").waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.id)).to.equal("library-title");
  });
});
