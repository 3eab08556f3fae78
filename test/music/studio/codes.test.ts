/** The plan of a song in the studio: metadata and audio codes. */
import { expect } from "chai";
import { shortSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

describe("how the studio shows the plan of a song", function () {
  this.timeout(180_000);
  const studio = new Studio();

  it("shows the metadata and codes of a song; the codes make the same song again", async () => {
    const { client } = studio.server;
    const planned = await client.makeOne({ ...shortSong, thinking: true, audio_format: "wav" });
    const page = await studio.open();
    await button(page, "More of a short song").click();
    await page.getByText("Plan", { exact: true }).click();
    await page.getByText("50 for 0:10").waitFor();
    await page.getByText("carillon-nano/lm").waitFor();
    await page.getByRole("img", { name: "50 for 0:10" }).waitFor();
    const codes = await page.getByLabel("Audio codes of a short song").inputValue();
    expect(codes.split(", ")).to.have.lengthOf(50);
    await button(page, "Use codes").click();
    expect(await page.getByLabel("Codes, five a second").inputValue()).to.equal(codes);
    await button(page, "Make").click();
    await page.getByRole("heading", { name: "Songs 2" }).waitFor();
    const [newest] = (await client.get("/v1/tasks")).body.data.tasks;
    expect(newest.parameters).to.include({ thinking: false, use_audio_codes: true });
    expect(await client.download(newest.songs[0])).to.deep.equal(await client.download(planned));
  });

  it("shows an error for invalid codes, and the number of valid codes", async () => {
    const page = await studio.open();
    await page.getByLabel("Sound", { exact: true }).fill("three bells");
    await page.getByText("Audio codes").click();
    await page.getByLabel("Codes, five a second").fill("no numbers");
    await button(page, "Make").click();
    await page.getByText("audio_code_string must hold 1 to 3000 codes").waitFor();
    studio.browserErrors.length = 0;
    await page.getByLabel("Codes, five a second").fill("1, 2, 3");
    await page.getByRole("img", { name: "3 for 0:01" }).waitFor();
    await page.getByLabel("Codes, five a second").fill("");
    expect(await page.getByRole("img").count()).to.equal(0);
  });
});
