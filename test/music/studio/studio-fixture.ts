/** The studio in a real browser with a real server. Browser errors and requests to other hosts fail the test. */
import { expect } from "chai";
import type { Browser, Locator, Page } from "playwright-core";
import { sharedBrowser } from "../../shared-browser.js";
import { type LiveServer, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

/** Page widths in pixels, with words for test titles. Phone tests repeat desktop tests, so they are marked slow. */
export const PAGE_WIDTHS = [
  [1280, "on a desk"],
  [390, "on a phone @slow"],
] as const;

const DESKTOP = { width: 1200, height: 800 };

export class Studio {
  readonly directory = temporaryDirectory();
  server!: LiveServer;
  /** Browser errors and requests to other hosts during the test. A test that expects errors clears this list. */
  readonly browserErrors: string[] = [];
  #browser!: Browser;

  /** Starts one server for all tests of a `describe`. */
  constructor(readonly settings: Record<string, string> = {}) {
    before(async () => {
      this.#browser = await sharedBrowser();
      this.server = await startLiveServer(this.directory, settings);
    });
    after(() => this.server?.close());
    afterEach(async () => {
      await Promise.all(this.#browser.contexts().map((context) => context.close()));
      expect(this.browserErrors.splice(0).join("\n")).to.equal("");
    });
  }

  /** Opens the studio in a new browser profile, and waits for the text `ready`. */
  async open(ready = "Online", locale = "en-US"): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: DESKTOP, locale });
    return this.openTab(await context.newPage(), ready);
  }

  /** Opens the studio in an existing page. Pages of one context share a browser profile. */
  async openTab(page: Page, ready = "Online"): Promise<Page> {
    page.setDefaultTimeout(150_000);
    page.on("console", (message) => {
      if (message.type() === "error") this.browserErrors.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => this.browserErrors.push(error.message));
    page.on("request", (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol === "http:" && host === new URL(this.server.url).host) return;
      if (!["blob:", "data:"].includes(protocol)) this.browserErrors.push(`asked ${request.url()}`);
    });
    await page.goto(this.server.url);
    await page.getByText(ready).waitFor();
    return page;
  }

  async restart(meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    const { port } = new URL(this.server.url);
    await this.server.close();
    try {
      await meanwhile();
    } finally {
      this.server = await startLiveServer(this.directory, { ...this.settings, SVC_API_PORT: port });
    }
  }
}

export function button(page: Page | Locator, name: string | RegExp): Locator {
  return page.getByRole("button", { name, exact: true });
}

/** Waits for the effects of the last render, which run after the next frame and show nothing. */
export function effectsRun(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise<void>((resolve) => requestAnimationFrame(() => setTimeout(resolve))),
  );
}

/** Windows of phones on their side, and of a desk at a zoom of 400 %. */
const LOW_WINDOWS = [
  { width: 844, height: 390 },
  { width: 667, height: 375 },
  { width: 360, height: 225 },
];

/** Checks in low windows that the player leaves most of the page visible, and that its controls are in view. */
export async function checkLowPlayer(page: Page, ...controls: Locator[]): Promise<void> {
  for (const size of LOW_WINDOWS) {
    await page.setViewportSize(size);
    await effectsRun(page);
    const player = await page.getByRole("region", { name: "Player" }).boundingBox();
    expect(player?.height, `player in ${size.width} px`).to.be.below(size.height / 2);
    for (const control of controls) {
      const { x = 0, y = 0, width = 0, height = 0 } = (await control.boundingBox()) ?? {};
      expect(x + width, `${control} in ${size.width} px`).to.be.within(1, size.width);
      expect(y + height, `${control} in ${size.height} px`).to.be.within(1, size.height);
    }
  }
}
