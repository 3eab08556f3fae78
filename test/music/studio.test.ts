/** Tests the studio in a real browser, with a real server. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { sharedBrowser } from "../shared-browser.js";
import { type LiveServer, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

describe("the studio", function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  const trainingRoot = temporaryDirectory();
  const settings = { SVC_TRAINING_ROOT: trainingRoot };
  let browser: Browser;
  let server: LiveServer;
  let page: Page;
  let browserErrors: string[];

  before(async () => {
    browser = await sharedBrowser();
    server = await startLiveServer(directory, settings);
  });
  after(() => server?.close());

  beforeEach(async () => {
    browserErrors = [];
    page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
    page.setDefaultTimeout(150_000);
    page.on("console", (message) => {
      if (message.type() === "error") browserErrors.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => browserErrors.push(error.message));
    await page.goto(server.url);
    await page.getByText("Online").waitFor();
  });
  afterEach(async () => {
    await page.close();
    expect(browserErrors).to.deep.equal([]);
  });

  const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
  const songs = () =>
    page
      .getByRole("list")
      .filter({ has: button(/^Favourite/) })
      .getByRole("listitem");

  /** Submits a fast song; resolves when the server has accepted it. */
  async function make(sound: string): Promise<void> {
    await page.getByLabel("Sound", { exact: true }).fill(sound);
    await chooseFastSettings();
    const answered = page.waitForResponse((response) => response.url().endsWith("/release_task"));
    await button(/^(Make|Add to queue)$/).click();
    expect((await answered).status()).to.equal(200);
  }

  async function chooseFastSettings(): Promise<void> {
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions", { exact: true }).fill("2");
    await page.getByText("All settings").click();
    await page.getByLabel("Steps", { exact: true }).fill("1");
    await page.getByText("All settings").click();
  }

  it("makes a song, plays it and shows its details", async () => {
    await page.getByText("No songs yet.").waitFor();
    await button("Make").click();
    await page.getByText("Describe the sound first.").waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).to.equal("prompt");
    await make("a slow waltz for two flutes");
    await button("Play a slow waltz for two flutes").click();
    await page.getByText(/\d:\d\d \/ 0:10/).waitFor();
    await button("Pause").click();
    await button("Version B").click();
    await button("Pause").waitFor();
    await button("Spectrogram of the song that plays").click();
    await page.waitForFunction(() => {
      const shadow = document.querySelector(".player .canvas > div")?.shadowRoot;
      const canvas = shadow?.querySelector<HTMLCanvasElement>("canvas[height='96']");
      const pixels = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data;
      return pixels !== undefined && new Set(new Uint32Array(pixels.buffer)).size > 20;
    });
    await button("More of a slow waltz for two flutes").click();
    expect(await page.getByRole("link", { name: "Download" }).count()).to.equal(3);
    await page.getByLabel("Format").last().selectOption("flac");
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download" }).last().click();
    const file = await download;
    expect(file.suggestedFilename()).to.equal("a slow waltz for two flutes - B.flac");
    expect(readFileSync(await file.path()).toString("latin1", 0, 4)).to.equal("fLaC");
    await button("Vary").click();
    await page.getByText("Queued.").waitFor();
    await songs().nth(1).waitFor();
    await button("Play a slow waltz for two flutes (variation)").waitFor();
    await page.getByRole("link", { name: "variation of a slow waltz for two flutes" }).click();
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    await button("Play version A of a slow waltz for two flutes").waitFor();
    await page.locator("select[name=list]").selectOption("");
    const { tasks } = (await server.client.get("/v1/tasks")).body.data;
    const seeds = tasks.map((task: { songs: { seed: number }[] }) => task.songs[0]?.seed);
    expect(tasks[0].parameters).to.include({ prompt: "a slow waltz for two flutes", inference_steps: 1 });
    expect(seeds[0]).not.to.equal(seeds[1]);
  });

  it("the studio keeps titles and favourites, searches songs and deletes them", async () => {
    await button(/^More of/)
      .first()
      .click();
    await button("Rename").click();
    await page.getByLabel("Title", { exact: true }).fill("Evening");
    await button("Save").click();
    await button("Favourite Evening").click();
    await button(/Favourites$/).click();
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    await button(/Favourites$/).click();
    await page.getByRole("heading", { name: "Songs 2" }).waitFor();
    await page.getByLabel("Search songs").fill("evening");
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    await page.getByLabel("Search songs").fill("nothing of the kind");
    await page.getByText("No songs match.").waitFor();
    await page.getByLabel("Search songs").fill("");
    await button(/^More of a slow waltz/).click();
    await button("Delete").last().click();
    await button("Delete for good").click();
    await page.getByRole("heading", { name: "Songs 1" }).waitFor();
    expect((await server.client.get("/v1/tasks")).body.data.total).to.equal(1);
  });

  it("repaints a window of a song @slow", async () => {
    await make("a march for tuba");
    await ended("a march for tuba");
    await button("More of a march for tuba").click();
    await button("Edit").first().click();
    await page.getByRole("button", { name: "Play Recording" }).waitFor();
    await page.getByText("0:10", { exact: true }).waitFor();
    const wave = await page.locator(".source .canvas").boundingBox();
    if (wave === null) throw new Error("no waveform");
    const y = wave.y + wave.height / 2;
    await page.mouse.move(wave.x + wave.width * 0.2, y);
    await page.mouse.down();
    await page.mouse.move(wave.x + wave.width * 0.4, y, { steps: 5 });
    await page.mouse.move(wave.x + wave.width * 0.6, y, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>("[name=repainting_end]")?.value,
    );
    await make("a solo on the piccolo");
    const repaint = await ended("a solo on the piccolo", "a solo on the piccolo (part changed)");
    expect(repaint.task_type).to.equal("repaint");
    expect(repaint.parameters.repainting_start).to.be.within(1, 3);
    expect(repaint.parameters.repainting_end).to.be.within(5, 7);
  });

  it("makes a cover of a dropped file", async () => {
    const { tasks } = (await server.client.get("/v1/tasks?state=succeeded")).body.data;
    const audio = await server.client.download(tasks[0].songs[0]);
    const dropped = await page.evaluateHandle(
      (bytes) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(bytes)], "voice.mp3", { type: "audio/mpeg" }));
        return transfer;
      },
      [...audio],
    );
    await page.locator("#source").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByText("voice.mp3").waitFor();
    await make("heavy metal");
    const cover = await ended("heavy metal");
    expect(cover.task_type).to.equal("cover");
    expect(cover.parameters.src_audio_path).to.match(/^upload:ctx_audio_/);
  });

  /** Waits until the task with this prompt has succeeded, and returns it. */
  async function ended(prompt: string, name = prompt) {
    await button(`Play ${name}`).waitFor();
    const { tasks } = (await server.client.get("/v1/tasks?state=succeeded")).body.data;
    return tasks.find((task: { prompt: string }) => task.prompt === prompt);
  }

  it("the studio reconnects after a restart of the server, and shows all songs", async () => {
    const known = (await server.client.get("/v1/tasks?state=succeeded")).body.data.total;
    const { port } = new URL(server.url);
    await server.close();
    await page.getByText("Offline: trying again").waitFor();
    server = await startLiveServer(directory, { ...settings, SVC_API_PORT: port });
    await page.getByText("Online", { exact: true }).waitFor();
    await page.getByRole("heading", { name: `Songs ${known}` }).waitFor();
    browserErrors.length = 0;
  });

  it("trains an adapter for three steps and uses it", async () => {
    const { tasks } = (await server.client.get("/v1/tasks?state=succeeded")).body.data;
    mkdirSync(join(trainingRoot, "songs"));
    writeFileSync(join(trainingRoot, "songs/flutes.mp3"), await server.client.download(tasks[0].songs[0]));
    await page.getByText("Models and adapters").click();
    await page.getByLabel("Folder of recordings").fill("songs");
    await page.getByLabel("Name", { exact: true }).fill("flutes");
    await page.getByLabel("What they sound like").fill("a waltz for flutes");
    await page.getByLabel("Epochs").fill("3");
    await page.getByLabel("Rank").fill("4");
    await button("Train").click();
    await page.getByText(/Finished · step 3 of 3 · loss/).waitFor();
    await page.getByRole("img", { name: /Loss from .* in 3 steps/ }).waitFor();
    await button("Use the trained adapter").click();
    await page.getByText("The trained adapter is in use.").waitFor();
    const status = async () => (await server.client.get("/v1/lora/status")).body.data;
    expect((await status()).lora_loaded).to.equal(true);
    const answered = page.waitForResponse((response) => response.url().endsWith("/v1/lora/scale"));
    await page.getByLabel("Strength").fill("0.5");
    await answered;
    expect((await status()).lora_scale).to.equal(0.5);
    await button("Unload").click();
    await page.getByText("Adapter unloaded.").waitFor();
    expect((await status()).lora_loaded).to.equal(false);
    await button("Load flutes").click();
    await page.getByText("The adapter is loaded.").waitFor();
    expect((await status()).lora_loaded).to.equal(true);
  });

  it("the studio asks for the API key if one is set", async () => {
    const { port } = new URL(server.url);
    await server.close();
    server = await startLiveServer(directory, {
      ...settings,
      SVC_API_PORT: port,
      SVC_API_KEY: "open sesame",
    });
    await page.reload();
    await page.getByText("This server asks for a key").waitFor();
    await page.getByLabel("This server asks for a key").fill("wrong");
    await button("Unlock").click();
    await page.getByText("The server does not accept this key.").waitFor();
    await page.getByLabel("The server does not accept this key.").fill("open sesame");
    await button("Unlock").click();
    await button("Play heavy metal").click();
    await page.getByText(/\d:\d\d \/ 0:10/).waitFor();
    await button("More of heavy metal").click();
    const addresses = await page
      .locator("[href], [src]")
      .evaluateAll((all) => all.map((one) => one.outerHTML));
    expect(addresses.join()).to.include("/v1/audio?path=").and.not.include("sesame");
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie]));
    expect(stored).to.not.include("sesame").and.not.include("carillon_");
    await button("Forget key").click();
    await page.getByText("This server asks for a key").waitFor();
    expect(await page.getByRole("main").getByRole("button").allTextContents()).to.deep.equal(["Unlock"]);
    expect(await page.getByText("heavy metal").count()).to.equal(0);
    // Requests that the server refuses after the key is forgotten.
    await page.close();
    browserErrors.length = 0;
  });
});
