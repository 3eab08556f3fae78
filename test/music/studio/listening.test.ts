/** Tests what a listener meets: the page of a shared song, the first songs, and equal loudness. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { oneSecondSong, shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const LYRICS = "Boats lie in a row";

describe("the page of a shared song", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const title = 'ميناء <b> & "Hafen"';
  let id: string;

  before(async () => {
    const { client } = studio.server;
    id = await client.submit({ ...oneSecondSong, prompt: "harbour at night", lyrics: LYRICS });
    await client.finished(id);
    await client.patch(`/v1/tasks/${id}`, { title });
  });

  it("shows cover, words and download, and plays the song", async () => {
    const page = await studio.open();
    await page.goto(`${studio.server.url}/song/${id}`);
    await page.getByRole("heading", { name: title }).waitFor();
    await page.getByText(LYRICS).waitFor();
    expect(await page.locator("svg.cover").count()).to.equal(1);
    expect(await page.title()).to.equal(`${title} – Carillon`);
    const file = await page.getByRole("link", { name: "Download" }).getAttribute("href");
    expect((await fetch(studio.server.url + file)).status).to.equal(200);
    await page.locator(".player .facts").getByText("0:01 / 0:01").waitFor();
    expect(await page.getByLabel("Search songs").count()).to.equal(0);
  });

  it("names the song and its picture for messengers", async () => {
    const page = await studio.open();
    await page.goto(`${studio.server.url}/song/${id}`);
    const content = (name: string) => page.locator(`meta[property="og:${name}"]`).getAttribute("content");
    expect(await content("title")).to.equal(title);
    const picture = await fetch((await content("image")) as string);
    expect(picture.headers.get("content-type")).to.equal("image/png");
    const bytes = Buffer.from(await picture.arrayBuffer());
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).to.deep.equal([1200, 630]);
    await page.setContent(`<img src="data:image/png;base64,${bytes.toString("base64")}">`);
    await page.waitForFunction(() => document.querySelector("img")?.naturalWidth === 1200);
  });

  it("names the studio for messengers, and pictures by the address that a proxy received", async () => {
    const { url } = studio.server;
    const read = async (path: string, headers: Record<string, string> = {}) => {
      const html = await (await fetch(url + path, { headers })).text();
      return Object.fromEntries(
        [...html.matchAll(/<meta property="og:(\w+)" content="([^"]*)">/g)].map((match) => match.slice(1)),
      );
    };
    const { title, description, image } = await read("/");
    expect([title, description]).to.deep.equal([
      "Carillon",
      "Make music: songs from words, covers, repaints and stems",
    ]);
    expect(image).to.equal(`${url}/cover.png`);
    expect((await fetch(image)).headers.get("content-type")).to.equal("image/png");
    const proxied = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "music.example" };
    expect((await read("/", proxied)).image).to.equal("https://music.example/cover.png");
    const song = await read(`/song/${id}`, proxied);
    expect(song.image).to.equal(`https://music.example/song/${id}/cover.png`);
    expect((await read("/", { "X-Forwarded-Proto": "data" })).image).to.equal(image);
  });

  it("says that a song was deleted", async () => {
    const page = await studio.open();
    await page.goto(`${studio.server.url}/song/05173848-cbc3-4b86-b50f-6c8941975494`);
    await page.getByText("This song is no longer here.").waitFor();
    studio.browserErrors.length = 0;
  });
});

describe("the page of a shared song on a server with a key", function () {
  this.timeout(180_000);
  const KEY = "a secret";
  const studio = new Studio({ SVC_API_KEY: KEY });

  it("asks for the key, and names neither the song nor its picture before", async () => {
    const { client, url } = studio.server;
    const accepted = await client.post(
      "/release_task",
      { ...oneSecondSong, prompt: "a private song" },
      { Authorization: `Bearer ${KEY}` },
    );
    const id = accepted.body.data.task_id;
    const page = await studio.open("Key needed");
    await page.goto(`${url}/song/${id}`);
    await page.getByText("To hear this song, enter the key of its server.").waitFor();
    expect(await (await fetch(`${url}/song/${id}`)).text()).not.to.include("private");
    expect((await fetch(`${url}/song/${id}/cover.png`)).status).to.equal(401);
    await page.locator("#key").fill(KEY);
    await button(page, "Unlock").click();
    await page.getByText("a private song").first().waitFor();
    studio.browserErrors.length = 0;
  });
});

describe("the first minute of the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();

  it("an empty library plays a song of the page at once, and a mood starts the radio", async () => {
    const page = await studio.open();
    await button(page, "Play Late at the window").click();
    await button(page, "Pause Late at the window").waitFor();
    expect(await button(page, /^Play (Lights of the city|Sunday by the sea)$/).count()).to.equal(2);
    await button(page, "To study").click();
    await page.getByRole("group", { name: "Radio" }).waitFor();
    expect(await page.getByLabel("Sound", { exact: true }).inputValue()).to.include("lo-fi");
    await button(page, "Play Late at the window").waitFor();
    await page.getByText(/The (next|first) song is/).waitFor();
    await button(page, "Close player").click();
    await page.getByRole("group", { name: "Radio" }).waitFor({ state: "detached" });
    studio.browserErrors.length = 0;
  });
});

describe("equal loudness in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();

  /** Plays a song; returns the gain of its audio element and of the amplifier behind it, in decibels. */
  async function gainOf(page: Page, song: string): Promise<number> {
    await page.evaluate(() => Object.assign(window, { sound: undefined })); // of the song before
    await button(page, `Play ${song}`).click();
    await button(page, `Pause ${song}`).waitFor();
    await page.waitForFunction(
      () => (window as unknown as { sound?: HTMLMediaElement }).sound?.paused === false,
    );
    return page.evaluate(() => {
      const { sound, amplifier } = window as unknown as { sound: HTMLMediaElement; amplifier?: GainNode };
      return 20 * Math.log10(sound.volume * (amplifier?.gain.value ?? 1));
    });
  }

  it("attenuates loud songs, and amplifies quiet ones no further than their peak", async () => {
    const { client } = studio.server;
    const loudness: Record<string, number> = {};
    for (const [prompt, level] of [
      ["loud", -8],
      ["quiet", -30],
    ] as const) {
      const id = await client.submit({
        ...shortSong,
        prompt,
        loudness: level,
        seed: 3,
        use_random_seed: false,
      });
      await client.finished(id);
      loudness[prompt] = (await client.get(`/v1/tasks/${id}`)).body.data.songs[0].loudness;
    }
    expect(loudness.loud).to.be.above(-13.9);
    const page = await studio.open();
    await page.evaluate(() => {
      const { play } = HTMLMediaElement.prototype;
      HTMLMediaElement.prototype.play = function () {
        Object.assign(window, { sound: this });
        return play.call(this);
      };
      const { createGain } = AudioContext.prototype;
      AudioContext.prototype.createGain = function () {
        const amplifier = createGain.call(this);
        Object.assign(window, { amplifier });
        return amplifier;
      };
    });
    expect(await gainOf(page, "loud")).to.be.closeTo(-14 - (loudness.loud as number), 0.1);
    expect(await gainOf(page, "quiet")).to.be.within(3, -14 - (loudness.quiet as number) + 0.1);
    expect(await gainOf(page, "loud")).to.be.closeTo(-14 - (loudness.loud as number), 0.1);
  });
});
