/** Tests previews in the studio. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { Studio } from "./studio-fixture.js";

/** A song that even a busy machine makes in less time than its preview lasts. */
const LONG = { prompt: "a long waltz", audio_duration: 240, inference_steps: 1, batch_size: 1 };

describe("the preview of a song in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();

  /** Length of the playing audio in seconds. */
  async function heard(page: Page): Promise<number> {
    const facts = await page.locator(".player .facts").textContent();
    const [, minutes, seconds] = /^(\d+):(\d\d)/.exec(facts ?? "") ?? [];
    return Number(minutes) * 60 + Number(seconds);
  }

  const until = async (isSo: () => Promise<boolean>) => {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 50));
  };

  it("a preview starts by keyboard and continues as the finished song", async () => {
    const page = await studio.open();
    const id = await studio.server.client.submit(LONG);
    const listen = page.getByRole("button", { name: "Listen to a long waltz while it is made" });
    await page.getByText("Your first song is on its way.").waitFor();
    await page.locator(".queue .state", { hasText: /^(Composing|Finishing)/ }).waitFor();
    await listen.focus();
    await page.keyboard.press("Enter");
    await page.getByText("still being made").waitFor();
    await until(async () => (await heard(page)) >= 1);
    expect((await studio.server.client.get(`/v1/tasks/${id}`)).body.data.state).to.equal("running");

    const before = await heard(page);
    await page.getByText("/ 4:00").waitFor();
    expect(await heard(page)).to.be.at.least(before);
    await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  });

  it("a preview ends when its song is cancelled", async () => {
    const page = await studio.open();
    await studio.server.client.submit({ ...LONG, prompt: "another waltz" });
    await page.getByRole("button", { name: "Listen to another waltz while it is made" }).click();
    await until(async () => (await heard(page)) >= 1);
    await page.getByRole("button", { name: "Cancel another waltz" }).click();
    await page.getByRole("region", { name: "Player" }).waitFor({ state: "hidden" });
  });
});
