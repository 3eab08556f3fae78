/** The browser that the test files of one process share, because each start takes as long as a short test. */
import type { Browser } from "playwright-core";
import { launchBrowser } from "./browser.js";

let browser: Browser | undefined;

/** Tests close their pages, not the browser. */
export async function sharedBrowser(): Promise<Browser> {
  if (!browser?.isConnected()) browser = await launchBrowser();
  return browser;
}

// A parallel worker of mocha runs further files later, and its exit ends the browser. Without workers, mocha exits only
// when nothing runs any more.
if (process.env.MOCHA_WORKER_ID === undefined) after(() => browser?.close());
