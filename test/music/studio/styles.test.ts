/** Trained styles in the studio: what the page says of them after the server has restarted. */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Page } from "playwright-core";
import { writeLora } from "../adapter-files.js";
import { oneSecondSong } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";
import { button, Studio } from "./studio-fixture.js";

describe("styles in the studio", function () {
  this.timeout(180_000);
  const root = temporaryDirectory();
  const studio = new Studio({ SVC_TRAINING_ROOT: root });

  /** Writes a style as training does. */
  function writeStyle(name: string): void {
    const final = join(root, name, "final");
    mkdirSync(final, { recursive: true });
    cpSync(writeLora(temporaryDirectory()), join(final, "adapter"), { recursive: true });
  }

  async function openWithStyle(name: string): Promise<Page> {
    writeStyle(name);
    const { client } = studio.server;
    await client.post("/v1/lora/unload", {});
    await client.post("/v1/lora/load", { lora_path: `${name}/final` });
    await client.post("/v1/lora/scale", { scale: 0.5 });
    const page = await studio.open();
    await page.getByText(`Style: ${name}`).waitFor();
    // The page leaves the length to the server, whose estimate is longer than this test needs.
    await page.route("**/release_task", (route) =>
      route.continue({ postData: { ...oneSecondSong, ...route.request().postDataJSON() } }),
    );
    return page;
  }

  const status = async () => (await studio.server.client.get("/v1/lora/status")).body.data;

  it("says that a restarted server has lost a style, and loads it again with its strength", async () => {
    const page = await openWithStyle("reels");
    await page.getByText("Models and adapters").click();
    await page.getByRole("checkbox", { name: "reels" }).waitFor();
    await studio.restart();
    await page.getByText("The style reels is no longer loaded.").waitFor();
    await page.getByText("Style: reels").waitFor({ state: "detached" });
    await page.getByRole("checkbox", { name: "reels" }).waitFor({ state: "detached" });

    await button(page, "Load it again").click();
    await page.getByText("The adapter is loaded.").waitFor();
    await page.getByText("Style: reels").waitFor();
    await page.getByText("no longer loaded").waitFor({ state: "detached" });
    expect((await status()).scales).to.deep.equal({ reels: 0.5 });
    studio.browserErrors.length = 0;
  });

  it("says nothing of a style that the user unloads", async () => {
    const page = await openWithStyle("jigs");
    await page.getByText("Models and adapters").click();
    await button(page, "Unload").click();
    await page.getByText("Style: jigs").waitFor({ state: "detached" });
    expect(await page.getByText("no longer loaded").count()).to.equal(0);
  });

  it("makes no song without a style that the form shows, unless the user presses again", async () => {
    const page = await openWithStyle("polkas");
    // The page does not know yet that a program has unloaded the style.
    await studio.server.client.post("/v1/lora/unload", {});
    await page.getByLabel("Sound", { exact: true }).fill("a plain polka");
    await button(page, "Make").click();
    await page.getByText("polkas is no longer loaded. Press again for a song without this style.").waitFor();
    expect((await studio.server.client.get("/v1/tasks")).body.data.total).to.equal(0);
    await button(page, "Make").click();
    await button(page, "Play a plain polka").waitFor();
  });

  it("lists trained styles with the newest first, and loads them by name", async () => {
    writeStyle("bands/cajun");
    writeStyle("newest");
    await studio.server.client.post("/v1/lora/unload", {});
    const page = await studio.open();
    await page.getByText("Models and adapters").click();
    const rows = page.getByRole("list", { name: "Styles" }).getByRole("listitem");
    expect(await rows.first().textContent())
      .to.include("newest")
      .and.to.include(`${new Date().getFullYear()}`);
    await button(page, "Load bands/cajun").click();
    await page.getByRole("checkbox", { name: "bands/cajun" }).waitFor();
    await page.getByText("Style: bands/cajun").waitFor();
    await button(page, "Load bands/cajun").waitFor({ state: "detached" });
    expect((await status()).paths).to.deep.equal({ "bands/cajun": "bands/cajun/final" });
  });

  it("says in the user's language why an adapter cannot be loaded, and names no folder of the server", async () => {
    writeStyle("first");
    writeStyle("second/first");
    writeLora(join(root, "wide"), { inputs: 8 });
    mkdirSync(join(root, "empty"), { recursive: true });
    const page = await studio.open("Online", "de-DE");
    await page.getByText("Modelle und Adapter").click();
    const load = async (path: string) => {
      await page.getByLabel("Adapter auf dem Server").fill(path);
      await button(page, "Adapter laden").click();
    };
    const notice = page.locator(".notice");
    for (const path of ["absent/final", "empty", join(root, "absent")]) {
      await load(path);
      await notice.getByText("An dieser Stelle auf dem Server ist kein Adapter.").waitFor();
      await button(page, "Meldung schließen").click();
    }
    await load("../elsewhere");
    await notice.getByText("Der Server lädt Adapter nur aus seinem Trainingsordner.").waitFor();
    await load("wide");
    await notice.getByText("Dieser Adapter ist nicht brauchbar:").waitFor();
    expect(await notice.textContent()).to.not.include(root);
    await load("first/final");
    await notice.getByText("Der Adapter ist geladen.").waitFor();
    await load("second/first/final");
    await notice.getByText("Ein Adapter mit dem Namen first ist schon geladen.").waitFor();
    studio.browserErrors.length = 0;
  });
});
