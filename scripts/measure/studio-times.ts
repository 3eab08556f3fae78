/**
 * Measures page weight, time to first sound and event latency of the studio:
 *
 *     node --import tsx scripts/measure/studio-times.ts [--songs 6] [--seconds 30]
 *
 * Runs in Chromium, with carillon-nano on the CPU. The script presses Make, then Listen as soon as that button
 * appears. A meter on the audio element detects sound. The latency of an event is the time from the server's log
 * line of a stage to the page's listener. The first song includes loading the models. At the end the page opens
 * with 10,000 songs. The script measures how soon the page accepts text, and the frame rate while it scrolls.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { launchBrowser } from "../../test/browser.js";
import { endServed, ServedProcess } from "../../test/e2e/served-process.js";
import { fillLibrary } from "../../test/music/studio/many-songs.js";

/** Times recorded in the page, in milliseconds since 1970. */
interface Noted {
  pressed: number;
  heard: number;
  stages: { stage: string; connected: number; arrived: number }[];
}

const TIMEOUT_MS = 600_000;
const LIBRARY_SONGS = 10_000;
/** Number of frames of the scrolling measurement. */
const FRAMES = 400;
/** Pixels scrolled per frame. At 60 frames per second, 30 and 85 songs pass per second. */
const SCROLL_SPEEDS = [40, 120];

const { values } = parseArgs({
  options: { songs: { type: "string", default: "6" }, seconds: { type: "string", default: "30" } },
});

const folder = fileURLToPath(new URL("../../dist/web/studio", import.meta.url));
/** Files of the first load; `languages/` is loaded on demand. */
const loaded = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
const files = loaded.map(({ name }) => readFileSync(join(folder, name)));
const weight = (pack: (file: Buffer) => Buffer) =>
  `${(files.reduce((sum, file) => sum + pack(file).length, 0) / 1000).toFixed(1)} kB`;
const gzipped = weight((file) => gzipSync(file, { level: 9 }));
console.log(
  `page: ${weight((file) => file)}, gzip -9 ${gzipped}, brotli ${weight((file) => brotliCompressSync(file))}`,
);

const directory = mkdtempSync(join(tmpdir(), "carillon-studio-"));
const browser = await launchBrowser();
try {
  const server = await ServedProcess.start(directory, { SVC_LOG_LEVEL: "debug" });
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.addInitScript(note);
  await page.goto(server.client.url);
  await page.getByLabel("Length s").fill(values.seconds);
  const latencies: number[] = [];
  const sounds: number[] = [];
  for (let number = 1; number <= Number(values.songs); number++) {
    const sound = `slow bossa nova number ${number}`;
    await page.getByLabel("Sound").fill(sound);
    await page.getByRole("button", { name: "Make", exact: true }).click();
    await page.getByRole("button", { name: `Listen to ${sound} while it is made` }).click();
    await page.waitForFunction(() => (globalThis as unknown as { noted: Noted }).noted.heard > 0);
    const { pressed, heard } = await noted();
    await page.getByRole("button", { name: `Play ${sound}` }).waitFor();
    const finishedSeconds = (Date.now() - pressed) / 1000;
    const { stages } = await noted();
    const told = stagesInLog(server.log);
    for (const { stage, connected, arrived } of stages) {
      const name = stage.replace(/ \(.*\)|\.{3}$/g, "");
      const at = told.findLast((line) => line.stage === name && line.at <= arrived)?.at;
      if (at !== undefined && at > connected) latencies.push(arrived - at);
    }
    sounds.push((heard - pressed) / 1000);
    console.log(
      `song ${number}: sound after ${sounds.at(-1)?.toFixed(2)} s, finished after ${finishedSeconds.toFixed(2)} s`,
    );
    await page.getByRole("button", { name: "Close player" }).click();
  }
  const [first, ...others] = sounds;
  console.log(
    `first sound: ${first?.toFixed(2)} s, then ${share(others, 0.5).toFixed(2)} s (median of ${others.length})`,
  );
  const [median, late, latest] = [0.5, 0.95, 1].map((part) => share(latencies, part).toFixed(0));
  console.log(
    `events: median ${median} ms, 95 % ${late} ms, at most ${latest} ms (${latencies.length} stages)`,
  );

  const [{ task_id: id }] = (await server.client.get("/v1/tasks?limit=1")).body.data.tasks;
  await page.close();
  await server.end("SIGTERM");
  await fillLibrary(directory, id, LIBRARY_SONGS);
  const full = await ServedProcess.start(directory);
  const library = await browser.newPage();
  const openedMs = performance.now();
  await library.goto(full.client.url, { waitUntil: "commit" });
  await library.getByLabel("Sound", { exact: true }).fill("x");
  const usableMs = performance.now() - openedMs;
  await library.getByRole("heading", { name: /^Songs \d{5}$/ }).waitFor();
  console.log(`${LIBRARY_SONGS} songs: accepts text after ${usableMs.toFixed(0)} ms`);
  for (const pixels of SCROLL_SPEEDS) {
    const fps = await library.evaluate(
      async ({ frames, pixels }) => {
        scrollTo(0, 0);
        const startMs = performance.now();
        for (let frame = 0; frame < frames; frame++) {
          scrollBy(0, pixels);
          await new Promise(requestAnimationFrame);
        }
        return (1000 * frames) / (performance.now() - startMs);
      },
      { frames: FRAMES, pixels },
    );
    console.log(`scrolling ${pixels} pixels per frame: ${fps.toFixed(0)} frames per second`);
  }
  await library.close();
  await full.end("SIGTERM");

  function noted(): Promise<Noted> {
    return page.evaluate(() => (globalThis as unknown as { noted: Noted }).noted);
  }
} finally {
  await browser.close();
  await endServed();
  // The city process may still write while it exits.
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
}

/** Runs in the page before the page's script. Has no named functions, because tsx would add calls to its helper. */
function note(): void {
  const page = globalThis as unknown as { noted: Noted };
  page.noted = { pressed: 0, heard: 0, stages: [] };
  document.addEventListener(
    "submit",
    () => {
      page.noted = { pressed: Date.now(), heard: 0, stages: [] };
    },
    true,
  );
  const { play } = HTMLMediaElement.prototype;
  const meters = new WeakMap<HTMLMediaElement, AnalyserNode>();
  HTMLMediaElement.prototype.play = function () {
    if (!meters.has(this)) {
      const context = new AudioContext();
      const meter = context.createAnalyser();
      context.createMediaElementSource(this).connect(meter).connect(context.destination);
      meters.set(this, meter);
      const samples = new Float32Array(meter.fftSize);
      setInterval(() => {
        meter.getFloatTimeDomainData(samples);
        if (samples.some((sample) => Math.abs(sample) > 1e-3)) page.noted.heard ||= Date.now();
      }, 5);
    }
    return play.call(this);
  };
  globalThis.EventSource = class extends EventSource {
    constructor(url: string | URL) {
      super(url);
      let connected = Number.POSITIVE_INFINITY;
      this.addEventListener("open", () => (connected = Date.now()));
      this.addEventListener("stage", ({ data }) => {
        page.noted.stages.push({ stage: JSON.parse(data).stage, connected, arrived: Date.now() });
      });
    }
  };
}

/** Stages in the log with their times. Unlike the page, the log omits the song's number and trailing dots. */
function stagesInLog(log: string): { stage: string; at: number }[] {
  const lines = log.split("\n").filter((line) => line.includes('"stage begins"'));
  return lines.map((line) => {
    const { stage, time } = JSON.parse(line);
    return { stage, at: Date.parse(time) };
  });
}

function share(sorted: readonly number[], part: number): number {
  const values = sorted.toSorted((a, b) => a - b);
  return values[Math.min(values.length - 1, Math.floor(part * values.length))] ?? Number.NaN;
}
