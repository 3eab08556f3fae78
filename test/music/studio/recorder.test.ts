/** Tests recording in the studio. The browser has a fake microphone that beeps. */
import { expect } from "chai";
import { oneSecondSong } from "../live-server.js";
import { button, Studio } from "./studio-fixture.js";

describe("recording in the studio", function () {
  this.timeout(180_000);
  const studio = new Studio();

  it("takes a recording as the source of a cover", async () => {
    const page = await studio.open();
    await button(page, "Record something to work on").click();
    await page.waitForFunction(() => (document.querySelector("meter")?.value ?? 0) > 0.01);
    await page.getByText("0:02").waitFor();
    await button(page, "Stop recording").click();
    await page.getByText(/^Recording .*\.webm$/).waitFor();
    await page.getByLabel("Sound", { exact: true }).fill("the same beeps");
    await button(page, "Make").click();
    await button(page, "Play the same beeps").waitFor();
    const [task] = (await studio.server.client.get("/v1/tasks")).body.data.tasks;
    expect(task.task_type).to.equal("cover");
    expect(task.songs[0].metas.duration).to.be.within(1.5, 10);
  });

  it("reports that the browser refuses the microphone, and still makes songs", async () => {
    const page = await studio.open();
    await page.route(studio.server.url, async (route) => {
      const response = await route.fetch();
      const headers = { ...response.headers(), "permissions-policy": "microphone=()" };
      await route.fulfill({ response, headers });
    });
    await page.reload();
    await button(page, "Record something to work on").click();
    await page.getByText("The browser does not allow the microphone on this page.").waitFor();
    await studio.server.client.make(oneSecondSong);
    studio.browserErrors.length = 0;
  });
});
