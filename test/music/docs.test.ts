/** Tests GET /docs in a real browser: find an endpoint, enter the key, send a request. */
import axe from "axe-core";
import { expect } from "chai";
import { button, Studio } from "./studio/studio-fixture.js";

/** Disables two rules that Swagger UI breaks: an h3 follows its h1, and its title is outside the main landmark. */
const AXE = 'axe.run({ rules: { "heading-order": { enabled: false }, region: { enabled: false } } })';

describe("the API documentation", function () {
  this.timeout(180_000);
  const studio = new Studio({ SVC_API_KEY: "k1" });

  async function openDocs() {
    const page = await studio.open("This server asks for a key");
    await page.goto(`${studio.server.url}/docs`);
    await page.locator(".opblock").first().waitFor();
    // Ignores the errors of the studio, which has no key in this test.
    studio.browserErrors.splice(0);
    return page;
  }

  it("the filter finds endpoints by any word; requests contain the key", async () => {
    const page = await openDocs();
    const all = await page.locator(".opblock").count();
    await page.getByPlaceholder("Filter by tag").fill("repainting_windows");
    const found = page.locator(".opblock");
    await page.waitForFunction((count) => document.querySelectorAll(".opblock").length < count, all);
    expect(await found.count()).to.be.above(0);

    await page.getByPlaceholder("Filter by tag").fill("inventory");
    await page.locator("#operations-Models-listModelInventory, .opblock").first().waitFor();
    await button(page, "Authorize").click();
    await page.getByLabel("auth-bearer-value").fill("k1");
    await page.getByRole("button", { name: "Apply credentials" }).first().click();
    await page.getByRole("button", { name: "Close" }).last().click();
    const inventory = page.locator(".opblock", { hasText: "/v1/model_inventory" });
    await inventory.locator(".opblock-summary-control").click();
    await inventory.getByRole("button", { name: "Execute" }).click();
    await inventory.getByText("carillon-nano").first().waitFor();
    expect(await inventory.locator(".curl").textContent()).to.include("curl -X 'GET'");
    const back = page.getByRole("link", { name: "Back to the page" });
    expect(await back.getAttribute("href")).to.equal("./");
  });

  for (const width of [390, 1280]) {
    for (const colorScheme of ["dark", "light"] as const) {
      const tag = width === 390 && colorScheme === "dark" ? "" : " @slow";
      it(`the documentation is accessible on a page ${width} pixels wide, in ${colorScheme} mode${tag}`, async () => {
        const page = await openDocs();
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.evaluate(axe.source);
        const { violations } = (await page.evaluate(AXE)) as axe.AxeResults;
        const shown = violations.map(
          ({ id, nodes }) => `${id}: ${nodes.length} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
        );
        expect(shown).to.deep.equal([]);
      });
    }
  }
});
