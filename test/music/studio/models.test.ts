/** Models in the studio: downloads with progress, and slots. */
import { expect } from "chai";
import { FakeHub } from "../../models/hub-server.js";
import { mainRepository } from "../../models/repositories.js";
import { temporaryDirectory } from "../tasks.js";
import { button, Studio } from "./studio-fixture.js";

const WEIGHTS = "acestep-v15-turbo/model.safetensors";

describe("model downloads in the studio", function () {
  this.timeout(180_000);
  const settings: Record<string, string> = { SVC_CHECKPOINTS: temporaryDirectory() };
  let hub: FakeHub;
  before(async () => {
    hub = await FakeHub.start();
    hub.repositories["ACE-Step/Ace-Step1.5"] = mainRepository();
    settings.HF_ENDPOINT = hub.url;
    settings.SVC_CONFIG_PATH2 = "carillon-nano";
  });
  const studio = new Studio(settings);

  it("a model is downloaded with progress, cancelled, downloaded again and loaded into a slot", async () => {
    hub.cuts[WEIGHTS] = { afterBytes: 300_000, hangs: true };
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    expect(await page.getByLabel("Slot 1").inputValue()).to.equal("carillon-nano");
    expect(await page.locator("label", { hasText: "Slot 1" }).textContent()).to.include("Repaint or extend");
    await page.getByLabel("Further models").fill("acestep-v15-turbo");
    await button(page, "Pull").click();
    await page.getByText(/^acestep-v15-turbo\/model\.safetensors · [\d.]+ MB of [\d.]+ MB$/).waitFor();
    const bar = page.getByRole("progressbar", { name: "Progress of acestep-v15-turbo" });
    expect(Number(await bar.getAttribute("value"))).to.be.within(0.001, 0.999);
    await button(page, "Cancel pull").click();
    await page
      .getByText("The download of acestep-v15-turbo was cancelled. The partial download is kept")
      .waitFor();

    delete hub.cuts[WEIGHTS];
    await button(page, "Pull").click();
    await page.getByText("acestep-v15-turbo is installed. Choose it above.").waitFor();
    await page.getByLabel("Slot 2").selectOption("acestep-v15-turbo");
    await page.getByText("acestep-v15-turbo is loaded.").waitFor();
    expect(await page.getByLabel("Slot 2").inputValue()).to.equal("acestep-v15-turbo");
    const { slots } = (await studio.server.client.get("/v1/model_inventory")).body.data;
    expect(slots[1]).to.deep.equal({ slot: 2, model: "acestep-v15-turbo", is_loaded: true });
  });

  it("an invalid model name shows an error", async () => {
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    await page.getByLabel("Further models").fill("acestep-v99");
    await button(page, "Pull").click();
    await page.getByText("There is no public model acestep-v99.").waitFor();
    studio.browserErrors.length = 0;
  });
});
