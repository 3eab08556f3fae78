/** Launches the real browser for page tests. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A microphone that beeps once a second.
  "--use-fake-device-for-media-stream",
];

export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) {
    throw new Error(`this test needs ${CHROMIUM}: install it with apt-get install chromium`);
  }
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
