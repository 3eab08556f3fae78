/**
 * Measures how fast the studio opens, plays and scrolls with many songs on a slow phone, and what an idle tab reads:
 *
 *     node --import tsx scripts/measure/studio-speed.ts [--songs 10000] [--cpu 4] [--rtt 150] [--kbits 1600] [--idle 60]
 *
 * Opening: Chromium slows its processor down `--cpu` times and limits its network. The time is that from the start of the
 * navigation until the form takes text and the first song can be played. Bytes are those on the wire, with headers.
 *
 * Playing: the time from the press until two minutes of MP3 sound, also on a network of 400 kbit/s.
 *
 * Scrolling: the processor time of the page's main thread for each frame, times `--cpu`, which does not depend on other
 * work of the computer. 50 frames a second leave 20 ms for each. A stub engine makes the songs that arrive.
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

const IDLE_SONGS = 120;
const FRAMES = 300;
/** Pixels scrolled in each frame: 14 and 57 songs a second at 60 frames a second on a desk. */
const SCROLL_SPEEDS = [20, 80];
/** A network that takes more than half as long as the song of 256 kbit/s. */
const SLOW_KBITS = 400;
const FRAME_MS = 1000 / 50;
/** Time between songs that arrive. */
const ARRIVAL_MS = 500;
/** Time for the requests after the first songs. */
const SETTLE_MS = 5000;
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1440, height: 900 };

const { values } = parseArgs({
  options: {
    songs: { type: "string", default: "10000" },
    cpu: { type: "string", default: "4" },
    rtt: { type: "string", default: "150" },
    kbits: { type: "string", default: "1600" },
    idle: { type: "string", default: "60" },
  },
});
const networkOf = (kbits: number) => ({
  offline: false,
  latency: Number(values.rtt),
  downloadThroughput: (kbits * 1000) / 8,
  uploadThroughput: (kbits * 500) / 8,
});

const directory = mkdtempSync(join(tmpdir(), "carillon-studio-"));
const browser = await launchBrowser();
try {
  const first = await ServedProcess.start(directory);
  const id = await first.client.submit({ prompt: "song 0", audio_duration: 10, audio_format: "mp3" });
  await first.client.finished(id);
  await measureFirstSound(first);
  await first.end("SIGTERM");
  await fillLibrary(directory, id, IDLE_SONGS);
  const few = await ServedProcess.start(directory);
  await measureIdle(few.client.url);
  await few.end("SIGTERM");
  await fillLibrary(directory, id, Number(values.songs));
  const full = await ServedProcess.startStub(directory, 100, { SVC_AUDIO_MAX_TOTAL_MB: "0" });
  await measureOpening(full.client.url);
  for (const viewport of [PHONE, DESK]) await measureScrolling(full, viewport);
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
    await session.send("Network.emulateNetworkConditions", networkOf(Number(values.kbits)));
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

async function measureFirstSound({ client }: ServedProcess): Promise<void> {
  const song = { prompt: "two minutes", audio_duration: 120, inference_steps: 1, batch_size: 1 };
  await client.finished(await client.submit({ ...song, audio_format: "mp3" }));
  for (const [cpu, kbits] of [
    [1, SLOW_KBITS],
    [Number(values.cpu), Number(values.kbits)],
  ] as const) {
    const { page, session } = await open(DESK);
    await session.send("Emulation.setCPUThrottlingRate", { rate: cpu });
    await session.send("Network.emulateNetworkConditions", networkOf(kbits));
    await page.goto(client.url);
    const play = page.getByRole("button", { name: "Play two minutes" });
    await play.waitFor();
    await sleep(SETTLE_MS);
    const pressed = await play.evaluate((button: HTMLElement) => {
      button.click();
      return performance.now();
    });
    const sounding = await since(page, ".player button.play[aria-label=Pause]");
    console.log(
      `processor ${cpu} times slower, ${kbits} kbit/s: sounds ${(sounding - pressed).toFixed(0)} ms after the press`,
    );
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

async function measureScrolling(server: ServedProcess, viewport: typeof PHONE): Promise<void> {
  const { page } = await open(viewport);
  await page.goto(server.client.url);
  if (viewport === PHONE)
    await page
      .getByRole("button", { name: /^Songs/ })
      .first()
      .click();
  const first = page.locator(".library button.play").first();
  await first.waitFor();
  await sleep(SETTLE_MS);
  for (const speed of SCROLL_SPEEDS) {
    const title = `${viewport.width} px, scrolling ${speed} pixels a frame`;
    console.log(`${title}: ${inWords(await frameTimes(page, speed))}`);
    let isOver = false;
    const arriving = (async () => {
      while (!isOver) {
        await server.client.submit({ prompt: "a new song", audio_duration: 10 });
        await sleep(ARRIVAL_MS);
      }
    })();
    console.log(`  while songs arrive: ${inWords(await frameTimes(page, speed))}`);
    isOver = true;
    await arriving;
  }
  await page.evaluate("scrollTo(0, 0)");
  await first.click();
  await page.locator(".player button.play[aria-label=Pause]").waitFor();
  await sleep(SETTLE_MS);
  console.log(`${viewport.width} px, playing: ${inWords(await frameTimes(page, 0))}`);
  console.log(`  and scrolling: ${inWords(await frameTimes(page, SCROLL_SPEEDS[0] as number))}`);
  await page.context().close();
}

function inWords(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)]?.toFixed(1);
  const inTime = times.filter((time) => time <= FRAME_MS).length / times.length;
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  return `${mean.toFixed(1)} ms (mean), ${at(0.95)} ms (95 %); ${(100 * inTime).toFixed(0)} % within ${FRAME_MS} ms`;
}

interface TraceEvent {
  name: string;
  cat: string;
  pid: number;
  tid: number;
  /** Start in microseconds, and processor time. */
  ts: number;
  tdur?: number;
}

/** Processor times of the main thread for each frame, in milliseconds of the slow processor. */
async function frameTimes(page: Page, speed: number): Promise<number[]> {
  await browser.startTracing(page, {
    categories: ["disabled-by-default-devtools.timeline", "blink.user_timing"],
  });
  await page.evaluate(`(async () => {
    for (let frame = 0; frame < ${FRAMES}; frame++) {
      performance.mark("frame");
      if (${speed} > 0) scrollTo(0, frame * ${speed});
      await new Promise(requestAnimationFrame);
    }
  })()`);
  const trace = JSON.parse(String(await browser.stopTracing())) as { traceEvents: TraceEvent[] };
  const marks = trace.traceEvents.filter(({ name, cat }) => name === "frame" && cat === "blink.user_timing");
  const tasks = trace.traceEvents.filter(
    ({ name, pid, tid }) => name === "RunTask" && pid === marks[0]?.pid && tid === marks[0]?.tid,
  );
  const times = marks.map(() => 0);
  for (const { ts, tdur = 0 } of tasks) {
    const frame = marks.findLastIndex((mark) => mark.ts <= ts);
    if (frame >= 0) times[frame] = (times[frame] ?? 0) + (tdur / 1000) * Number(values.cpu);
  }
  // The last frame does not end with a mark.
  return times.slice(0, -1);
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
