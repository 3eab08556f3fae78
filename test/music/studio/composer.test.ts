/** Tests the form of the studio. */
import { expect } from "chai";
import type { Page } from "playwright-core";
import { longSong } from "../live-server.js";
import { document as description } from "../openapi-check.js";
import { button, Studio } from "./studio-fixture.js";

/** Labels of controls whose form field does not have the name of the parameter. */
const OTHER_CONTROLS: Readonly<Record<string, string>> = {
  prompt: "Sound",
  lyrics: "Lyrics",
  thinking: "Plan with the language model",
  get_lrc: "Lyric timestamps",
  src_audio_path: "Recording to work on",
  reference_audio_path: "Reference recording",
  sample_mode: "In one sentence",
  sample_query: "In one sentence",
  audio_code_string: "Codes, five a second",
  use_audio_codes: "Codes, five a second",
};

describe("the form of the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();
  const value = (page: Page, label: string) => page.getByLabel(label, { exact: true }).inputValue();

  it("has a control for every song parameter", async () => {
    const page = await studio.open();
    for (const group of ["Tempo, key, language", "Reference recording", "Audio codes", "All settings"])
      await page.getByText(group).click();
    await page.getByLabel("Steps", { exact: true }).waitFor();
    const legends = await page.locator("legend").allTextContents();
    expect(legends.filter((title) => title !== "").at(0)).to.equal("Every song");
    const content = description.paths["/release_task"]?.post?.requestBody?.content["application/json"];
    const wanted = new Set(Object.keys(content?.schema.properties as object));
    for (const [name, label] of Object.entries(OTHER_CONTROLS)) {
      await page.getByLabel(label, { exact: true }).waitFor({ state: "attached" });
      wanted.delete(name);
    }
    const tick = async () => {
      const names = await page
        .locator("[name]")
        .evaluateAll((fields) => fields.map((field) => field.getAttribute("name") ?? ""));
      for (const name of names) wanted.delete(name);
    };
    await tick();
    const recording = { name: "tune.wav", mimeType: "audio/wav", buffer: Buffer.alloc(44) };
    await page.getByLabel("Recording to work on").setInputFiles(recording);
    await page.getByLabel("What to do").waitFor();
    const { length } = await page.getByLabel("What to do").locator("option").all();
    for (let index = 0; index < length; index++) {
      await page.getByLabel("What to do").selectOption({ index });
      await tick();
    }
    // Two parameters have no control: repaint windows are selected in the waveform, and there is only one language
    // model backend.
    expect([...wanted]).to.have.members(["repainting_windows", "lm_backend"]);
  });

  it("shows the settings of a language model only where one is installed", async () => {
    const page = await studio.open();
    const open = async () => {
      await page.getByText("All settings").click();
      await page.getByLabel("Steps", { exact: true }).waitFor();
    };
    await open();
    await page.locator("[name=lm_temperature]").waitFor();
    await page.route("**/v1/model_inventory", async (route) => {
      const response = await route.fetch();
      const { data, ...rest } = await response.json();
      await route.fulfill({ response, json: { ...rest, data: { ...data, lm_models: [] } } });
    });
    await page.reload();
    await open();
    expect(await page.locator("[name^=lm_], [name^=use_cot]").count()).to.equal(0);
    expect(await page.locator("legend").allTextContents()).not.to.include("Planner");
  });

  it("says by Make why a song was refused until the form changes; other errors leave after 30 s", async () => {
    const page = await studio.open();
    await page.setViewportSize({ width: 390, height: 844 });
    const noise = { name: "noise.wav", mimeType: "audio/wav", buffer: Buffer.from("not a recording") };
    await page.getByLabel("Recording to work on").setInputFiles(noise);
    await page.getByLabel("Sound", { exact: true }).fill("another sound");
    await page.clock.install();
    await button(page, "Make").click();
    const refusal = page.locator(".composer").getByText("Recording to work on: not a recording");
    await refusal.waitFor();
    await page.clock.fastForward(60_000);
    expect(await refusal.isVisible()).to.equal(true);
    await page.getByLabel("Sound", { exact: true }).fill("yet another sound");
    await refusal.waitFor({ state: "detached" });

    await page.route("**/v1/create_sample", (route) => route.fulfill({ status: 500, json: {} }));
    const error = page.locator(".notice .failed");
    const fail = async () => {
      await page.getByLabel("In one sentence").fill("a lullaby");
      await button(page, "Write it").click();
      await error.waitFor();
    };
    await fail();
    await page.clock.fastForward(20_000);
    expect(await error.isVisible()).to.equal(true);
    await page.clock.fastForward(11_000);
    await error.waitFor({ state: "detached" });
    await fail();
    await error.hover();
    await page.clock.runFor(100);
    await page.clock.fastForward(120_000);
    expect(await error.isVisible()).to.equal(true);
    studio.browserErrors.length = 0;
  });

  it('is filled by "Surprise me" and "Write it"', async () => {
    const page = await studio.open();
    await button(page, "Surprise me").click();
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#prompt")?.value);
    await button(page, "Clear").click();
    expect(await value(page, "Sound")).to.equal("");
    await page.getByLabel("In one sentence").fill("a waltz in D minor at 90 bpm");
    await button(page, "Write it").click();
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#prompt")?.value);
    await page.getByText("Tempo, key, language").click();
    expect(await value(page, "Tempo BPM")).to.equal("90");
    expect(await page.locator("[name=key_scale]").inputValue()).to.equal("D minor");
  });

  it("inserts a section tag at the cursor", async () => {
    const page = await studio.open();
    await page.getByLabel("Lyrics", { exact: true }).fill("la la");
    await button(page, "Chorus").click();
    await page.keyboard.type("hey");
    expect(await value(page, "Lyrics")).to.equal("la la\n\n[Chorus]\nhey");
  });

  it("queues several songs, shows their positions, and repeats one", async () => {
    const { client } = studio.server;
    const first = await client.submit(longSong);
    await client.untilStarted(first);
    const page = await studio.open();
    await page.getByText("Tempo, key, language").click();
    await page.getByLabel("Length s").fill("10");
    await page.getByLabel("Versions", { exact: true }).fill("1");
    await page.getByLabel("File").selectOption("wav");
    await page.getByText("All settings").click();
    await page.getByLabel("Steps", { exact: true }).fill("1");
    for (const sound of ["one bell", "two bells"]) {
      await page.getByLabel("Sound", { exact: true }).fill(sound);
      await button(page, "Add to queue").click();
      await button(page, `Cancel ${sound}`).waitFor();
    }
    await page.getByText("Waiting, place 2").waitFor();
    await button(page, "Cancel one bell").dblclick();
    await page.getByText("Waiting, place 2").waitFor({ state: "detached" });
    await page.getByText("Next", { exact: true }).waitFor();
    expect(await page.getByText("was finished already").count(), "after a double click").to.equal(0);
    await button(page, "Cancel a long song").click();
    await button(page, "More of two bells").click();
    await button(page, "Make again").click();
    await button(page, "Play two bells").nth(1).waitFor();
    const { tasks } = (await client.get("/v1/tasks?search=two&state=succeeded")).body.data;
    const [again, before] = await Promise.all(
      tasks.map(({ songs }: { songs: { file: string }[] }) => client.download(songs[0] as { file: string })),
    );
    expect(again).to.deep.equal(before);
  });
});
