/**
 * Measures how fast the studio opens and scrolls with 10,000 songs on a slow phone, and what an idle tab reads:
 *
 *     node --import tsx scripts/measure/studio-speed.ts [--cpu 4] [--rtt 150] [--kbits 1600] [--idle 180]
 *
 * Chromium slows its processor down `--cpu` times and limits its network. "Usable" is the time from the start of the
 * navigation until the form takes text and the first song can be played. Bytes are those on the wire, with headers. The
 * idle tab has 120 songs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { CDPSession, Page } from "playwright-core";
import { launchBrowser } from "../../test/browser.js";
import { endServed, ServedProcess } from "../../test/e2e/served-process.js";
import { fillLibrary } from "../../test/music/studio/many-songs.js";

const SONGS = 10_000;
const IDLE_SONGS = 120;
const SCROLL_SECONDS = 5;
/** Pixels scrolled per second: 14 and 57 songs. */
const SCROLL_SPEEDS = [1200, 4800];
/** Time for the requests after the first songs. */
const SETTLE_MS = 5000;
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1440, height: 900 };

const { values } = parseArgs({
  options: {
    cpu: { type: "string", default: "4" },
    rtt: { type: "string", default: "150" },
    kbits: { type: "string", default: "1600" },
    idle: { type: "string", default: "180" },
  },
});
const network = {
  offline: false,
  latency: Number(values.rtt),
  downloadThroughput: (Number(values.kbits) * 1000) / 8,
  uploadThroughput: (Number(values.kbits) * 500) / 8,
};

const directory = mkdtempSync(join(tmpdir(), "carillon-studio-"));
const browser = await launchBrowser();
try {
  const first = await ServedProcess.start(directory);
  const id = await first.client.submit({ prompt: "song 0", audio_duration: 10, audio_format: "mp3" });
  await first.client.finished(id);
  await first.end("SIGTERM");
  await fillLibrary(directory, id, IDLE_SONGS);
  const few = await ServedProcess.start(directory);
  await measureIdle(few.client.url);
  await few.end("SIGTERM");
  await fillLibrary(directory, id, SONGS);
  const full = await ServedProcess.start(directory);
  await measureOpening(full.client.url);
  await measureScrolling(full);
  await full.end("SIGTERM");
} finally {
  await browser.close();
  await endServed();
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
}

async function measureIdle(url: string): Promise<void> {
  const { page, wire } = await open(DESK);
  await page.goto(url);
  await page
    .getByRole("button", { name: /^Play song/ })
    .first()
    .waitFor();
  await sleep(SETTLE_MS);
  const before = wire.bytes;
  await sleep(Number(values.idle) * 1000);
  const perHour = ((wire.bytes - before) * 3600) / Number(values.idle);
  console.log(
    `idle with ${IDLE_SONGS} songs: ${(perHour / 1e6).toFixed(3)} MB an hour, from ${values.idle} s`,
  );
  await page.context().close();
}

async function measureOpening(url: string): Promise<void> {
  for (const viewport of [PHONE, DESK]) {
    const { page, wire, session } = await open(viewport);
    await session.send("Emulation.setCPUThrottlingRate", { rate: Number(values.cpu) });
    await session.send("Network.emulateNetworkConditions", network);
    await page.goto(url, { waitUntil: "commit" });
    const form = await since(page, "#prompt");
    // A phone shows the form first, and songs in another view.
    const songs = viewport === PHONE ? form : await since(page, ".library button.play");
    await sleep(SETTLE_MS);
    const times = `form after ${form.toFixed(0)} ms, songs after ${songs.toFixed(0)} ms`;
    console.log(`${viewport.width} px: ${times}, ${(wire.bytes / 1000).toFixed(1)} kB by then and idle`);
    await page.context().close();
  }
}

/** Time from the start of the navigation until the page has the element, in milliseconds. */
async function since(page: Page, selector: string): Promise<number> {
  const ready = await page.waitForFunction(
    (wanted) => document.querySelector(wanted) !== null && performance.now(),
    selector,
    { polling: "raf" },
  );
  return (await ready.jsonValue()) as number;
}

async function measureScrolling(server: ServedProcess): Promise<void> {
  const { page, session } = await open(DESK);
  await page.goto(server.client.url);
  await page
    .getByRole("button", { name: /^Play song/ })
    .first()
    .waitFor();
  await session.send("Emulation.setCPUThrottlingRate", { rate: Number(values.cpu) });
  for (const speed of SCROLL_SPEEDS) {
    console.log(`scrolling ${speed} pixels a second: ${await frameRate(page, speed)}`);
    let isOver = false;
    const arriving = (async () => {
      while (!isOver)
        await server.client.make({ prompt: "a new song", audio_duration: 10, inference_steps: 1 });
    })();
    console.log(`  while songs arrive: ${await frameRate(page, speed)}`);
    isOver = true;
    await arriving;
  }
  await page.context().close();
}

async function frameRate(page: Page, speed: number): Promise<string> {
  const times = (await page.evaluate(`(async () => {
    scrollTo(0, 0);
    const times = [performance.now()];
    while (times.at(-1) - times[0] < ${SCROLL_SECONDS * 1000}) {
      scrollTo(0, ((times.at(-1) - times[0]) / 1000) * ${speed});
      await new Promise(requestAnimationFrame);
      times.push(performance.now());
    }
    return times;
  })()`)) as number[];
  const frames = times.slice(1).map((time, index) => time - (times[index] as number));
  const slowest = frames.toSorted((a, b) => b - a)[Math.floor(frames.length / 20)] ?? 0;
  return `${(frames.length / SCROLL_SECONDS).toFixed(0)} frames a second, 95 % within ${slowest.toFixed(0)} ms`;
}

async function open(
  viewport: typeof PHONE,
): Promise<{ page: Page; wire: { bytes: number }; session: CDPSession }> {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const wire = { bytes: 0 };
  await session.send("Network.enable");
  session.on("Network.dataReceived", ({ encodedDataLength }) => {
    wire.bytes += encodedDataLength;
  });
  session.on("Network.responseReceived", ({ response }) => {
    wire.bytes += response.encodedDataLength;
  });
  return { page, wire, session };
}
