/**
 * Launches Chromium's headless shell for page tests, because full Chromium needs three times the processor
 * time.
 */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium-headless-shell";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Evaluations of Playwright count as clicks of the user. Whether a page may play would depend on their timing.
  "--autoplay-policy=no-user-gesture-required",
  // A fake microphone that beeps once a second. Pages may use it without asking for permission.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
];

export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) {
    throw new Error(`this test needs ${CHROMIUM}: install it with apt-get install chromium-headless-shell`);
  }
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
