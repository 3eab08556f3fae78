/** Songs play in the studio while they arrive. */

import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

const SECONDS = 20;
/** Seconds until a whole song has arrived, much longer than the test needs. */
const ARRIVAL_SECONDS = 40;

/** State of an audio element. */
interface Heard {
  isHeard: boolean;
  at: number;
  /** Seconds of the song that have arrived. */
  arrived: number;
}

describe("a song that arrives slowly", function () {
  this.timeout(180_000);
  const studio = new Studio();

  for (const [format, mark] of [
    ["wav", ""],
    ["mp3", " @slow"],
    ["flac", " @slow"],
  ] as const) {
    it(`sounds before it is here, and at once where the user seeks ahead: ${format}${mark}`, async () => {
      const { client } = studio.server;
      const song = { ...shortSong, audio_duration: SECONDS, audio_format: format, prompt: format };
      const id = await client.submit(song);
      await client.finished(id);
      const [{ bytes }] = (await client.get(`/v1/tasks/${id}`)).body.data.songs;
      const page = await studio.open();
      await page.evaluate(`
        const { play } = HTMLMediaElement.prototype;
        HTMLMediaElement.prototype.play = function () {
          window.heard = () => {
            const { buffered, currentTime, paused, readyState } = this;
            let arrived = 0;
            for (let i = 0; i < buffered.length; i++) arrived += buffered.end(i) - buffered.start(i);
            return { isHeard: !paused && readyState > HTMLMediaElement.HAVE_CURRENT_DATA, at: currentTime, arrived };
          };
          return play.call(this);
        };
      `);
      const heardAfter = async (seconds: number): Promise<Heard> => {
        for (;;) {
          const now = await page.evaluate<Heard>("heard()");
          if (now.isHeard && now.at > seconds) return now;
          await sleep(50);
        }
      };
      const session = await page.context().newCDPSession(page);
      const slow = { downloadThroughput: bytes / ARRIVAL_SECONDS, uploadThroughput: 1e6 };
      await session.send("Network.emulateNetworkConditions", { ...slow, offline: false, latency: 0 });
      await button(page, `Play ${format}`).click();
      await button(page, `Pause ${format}`).waitFor();
      expect((await heardAfter(0)).arrived).to.be.below(SECONDS / 2);

      const bar = page.locator(".player .outline");
      const { width = 0, height = 0 } = (await bar.boundingBox()) ?? {};
      await bar.click({ position: { x: 0.75 * width, y: height / 2 } });
      expect((await heardAfter(0.75 * SECONDS)).arrived).to.be.below(SECONDS / 2);
    });
  }
});
