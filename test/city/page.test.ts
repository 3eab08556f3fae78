/** Tests the city page in a real browser, served by a real bridge with a small town. */

import { createServer } from "node:http";
import axe from "axe-core";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { setBuildingActive } from "../../src/city/commands/buildings.js";
import { startCity } from "../../src/city/index.js";
import { loadConfig } from "../../src/config.js";
import { listenLocally } from "../local-server.js";
import { sharedBrowser } from "../shared-browser.js";
import { bridgeForEach, eventually, SILENT } from "./bridge.js";
import { advance, place, smallTown } from "./simulation/towns.js";

const TWO_WEEKS_FRAMES = 8192;
/** Colours of the light scheme. */
const SMALL_ROAD = [0xa3, 0xa6, 0xa3];
const HIGHWAY = [0xe0, 0x91, 0x3a];
const HOME = [0x2e, 0x7d, 0x32];
/** Colour of power plants. */
const SERVICE = [0x8a, 0x6d, 0x00];
const MARK = [0xc2, 0x18, 0x5b];
/** Colour of cells that can be zoned, blended with the ground. */
const FREE_CELL = [0xc0, 0xc5, 0xbf];
const WATER_PIPE = [0x16, 0x66, 0xc5];

describe("the city page", function () {
  this.timeout(120_000);
  let browser: Browser;
  let page: Page;
  let complaints: string[];

  // This hook must run before the hook that stops the bridge: a page without its bridge logs errors.
  afterEach(async () => {
    await page.close();
    expect(complaints).to.deep.equal([]);
  });
  const bridge = bridgeForEach({ map: "highway" });

  before(async () => {
    browser = await sharedBrowser();
  });

  beforeEach(async () => {
    smallTown(bridge.city);
    advance(bridge.city, TWO_WEEKS_FRAMES);
    page = await browser.newPage({ viewport: { width: 1200, height: 760 }, colorScheme: "light" });
    complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(bridge.client.url);
    await untilCount(HOME, (pixels) => pixels > 0);
  });

  /** Sums an expression of red, green and blue over all pixels of the map. */
  const sumOf = (expression: string) =>
    page.evaluate<number>(`(() => {
      const canvas = document.getElementById("map");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) {
        const red = data[i], green = data[i + 1], blue = data[i + 2];
        sum += Number(${expression});
      }
      return sum;
    })()`);
  const count = ([red, green, blue]: readonly number[]) =>
    sumOf(`red === ${red} && green === ${green} && blue === ${blue}`);
  /**
   * Counts green pixels: those whose green exceeds red and blue by more than `least`. The map draws homes and
   * high values of data layers in green.
   */
  const greens = (least: number) => sumOf(`green - red > ${least} && green - blue > ${least}`);
  const untilCount = (color: readonly number[], satisfies: (pixels: number) => boolean) =>
    eventually(() => count(color), satisfies);

  it("draws roads, buildings and services, and shows the city's state, money, history and messages", async () => {
    expect(await count(SMALL_ROAD)).to.be.above(1000);
    expect(await count(SERVICE)).to.be.above(100);
    const { citizens, gameTime, demand } = await bridge.client.state("/state/summary");
    expect(citizens.count).to.be.above(0);
    expect(await page.textContent("#citizens")).to.equal(String(citizens.count));
    expect(await page.textContent("#clock")).to.equal(gameTime.replace("T", " ").slice(0, 16));
    const homes = page.getByRole("meter", { name: "Demand: Homes" });
    expect(await homes.getAttribute("aria-valuenow")).to.equal(String(demand.residential));
    if (process.env.CITY_PAGE_SCREENSHOT) await page.screenshot({ path: process.env.CITY_PAGE_SCREENSHOT });

    await page.getByRole("img", { name: /^Citizens over 2 weeks: Citizens \d/ }).waitFor();
    await page.getByRole("img", { name: /^Demand over 2 weeks: Homes \d+, Shops \d+, Work \d+/ }).waitFor();
    const { balance } = await bridge.client.state("/state/budget");
    expect(await page.textContent("#balance")).to.equal(Math.round(balance).toLocaleString("en"));
    await page.getByRole("row", { name: /^Electricity \d/ }).waitFor();
    const { chirps } = await bridge.client.state("/state/chirps");
    await page.getByText(chirps[0].text).first().waitFor();
  });

  it("starts and stops the clock", async () => {
    const before = await page.textContent("#clock");
    await page.getByRole("button", { name: "Speed 3" }).click();
    const simulation = async () => (await bridge.client.state("/state/summary")).simulation;
    const running = await eventually(simulation, ({ paused }) => !paused);
    expect(running.selectedSpeed).to.equal(3);
    await eventually(async () => (await page.textContent("#clock")) !== before, Boolean);
    await page.getByRole("button", { name: "Pause" }).click();
    const stopped = await eventually(simulation, ({ paused }) => paused);
    expect(stopped.selectedSpeed).to.equal(3);
    await page.getByRole("button", { name: "Pause", pressed: true }).waitFor();
  });

  it("shows roads and commands of other clients and, on request, their reads; lists are reachable by keyboard", async () => {
    const roads = await count(SMALL_ROAD);
    await bridge.client.road(400, 300, 520, 300, { roadPrefab: "Basic Road" });
    await bridge.client.refusal("place-building", { buildingPrefab: "<img src=x onerror=alert(1)>" });
    await page.getByText("API OK: Build network Basic Road").waitFor();
    await page.getByText("API FAIL: Place building <img src=x onerror=alert(1)>").waitFor();
    await untilCount(SMALL_ROAD, (pixels) => pixels > roads + 50);
    expect(await page.locator("#feed li").allTextContents()).to.satisfy((lines: string[]) =>
      lines.every((line) => !line.includes("Read ")),
    );

    await bridge.client.state("/state/economy");
    const line = page.getByText("API OK: Read economy state");
    await line.waitFor({ state: "attached" });
    expect(await line.isVisible()).to.equal(false);
    await page.getByLabel("Show reads too").check();
    await line.waitFor();
    for (const id of ["feed", "chirps"]) {
      await page.locator(`#${id}`).focus();
      expect(await page.evaluate("document.activeElement.id")).to.equal(id);
    }
  });

  it("recovers without a reload when the bridge is back", async () => {
    const { port } = new URL(bridge.client.url);
    const status = () => page.locator("#status").textContent();
    await bridge.restart(Number(port), async () => {
      await eventually(status, (text) => text?.startsWith("The city does not answer.") === true);
    });
    await eventually(status, (text) => text === "");
    await bridge.client.refusal("place-building", { buildingPrefab: "after the return" });
    await page.getByText("API FAIL: Place building after the return").waitFor();
    complaints = complaints.filter((text) => !text.includes("net::ERR_"));
  });

  it("shows and hides layers, and draws data layers with a scale", async () => {
    expect(await count(WATER_PIPE)).to.equal(0);
    await page.getByLabel("Water pipes").check();
    await untilCount(WATER_PIPE, (pixels) => pixels > 100);
    await page.getByLabel("Buildings").uncheck();
    await untilCount(HOME, (pixels) => pixels === 0);
    await page.getByLabel("Buildings").check();
    await untilCount(HOME, (pixels) => pixels > 0);

    const good = () => greens(30);
    const before = await good();
    await page.getByRole("combobox", { name: "Data" }).selectOption("power");
    await eventually(good, (pixels) => pixels > before + 500);
    expect(await count(HOME), "buildings fade behind the data").to.equal(0);
    expect(await page.locator("#scale").isVisible()).to.equal(true);
    for (const name of ["landValue", "pollution", "water", "fire"]) {
      const answered = page.waitForResponse((response) => response.url().includes(`layer=${name}`));
      await page.getByRole("combobox", { name: "Data" }).selectOption(name);
      expect((await answered).status()).to.equal(200);
    }
    await page.getByRole("combobox", { name: "Data" }).selectOption("");
    await eventually(good, (pixels) => pixels <= before + 500);
  });

  it("draws all buildings at every zoom, as squares when zoomed out", async () => {
    await page.locator("#map").focus();
    for (let i = 0; i < 8; i++) await page.keyboard.press("-");
    for (const layer of ["Zones", "Terrain and water", "Problems", "Services"]) {
      await page.getByRole("checkbox", { name: layer }).uncheck();
    }
    const green = () => greens(12);
    await eventually(green, (pixels) => pixels > 4);
    await page.getByLabel("Buildings").uncheck();
    await eventually(green, (pixels) => pixels === 0);
  });

  it("reloads only changed data", async () => {
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const times = (path: string) => asked.filter((each) => each === path).length;
    const answered = (path: string) =>
      page.waitForResponse((response) => new URL(response.url()).pathname === path);
    for (let round = 0; round < 2; round++) await answered("/state/map-tiles");
    expect([times("/state/networks"), times("/state/zone-blocks"), times("/state/growables")]).to.deep.equal([
      0, 0, 0,
    ]);
    const networks = answered("/state/networks");
    await bridge.client.road(400, 300, 520, 300);
    expect((await networks).status()).to.equal(200);
  });

  it("shows details on click, and asks before destructive actions", async () => {
    const turbine = facility("Wind Turbine");
    await clickAt(140, 60);
    await page.getByText(`Wind Turbine (Building ${turbine})`).waitFor();
    const stands = () => bridge.city.buildings.get(turbine) !== undefined;
    await page.getByRole("button", { name: "Bulldoze" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator("#confirm").waitFor({ state: "hidden" });
    expect(stands()).to.equal(true);
    await page.getByRole("button", { name: "Bulldoze" }).click();
    await page.getByRole("button", { name: "Yes, do it" }).click();
    await eventually(async () => !stands(), Boolean);
    await clickAt(400, 200);
    await page.getByText(/\(Segment \d+\)$/).waitFor();
    await untilCount(MARK, (pixels) => pixels > 50);
    await clickAt(600, 200);
    await page.getByText("Ground at").waitFor();
    await page.locator("#details-body").getByText("High school").waitFor();
    await page.getByRole("button", { name: "Close details" }).click();
    await page.locator("#details").waitFor({ state: "hidden" });
    await untilCount(MARK, (pixels) => pixels === 0);
  });

  it("builds a road, a zone and a service after a dry run; undo bulldozes them", async () => {
    const { city } = bridge;
    const plan = page.getByRole("region", { name: "Plan" });
    const build = plan.getByRole("button", { name: "Build" });
    const segments = city.segments.all().length;
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await clickAt(400, 80);
    await clickAt(490, 80);
    await plan.getByText("The segment can be built.").waitFor();
    await plan.getByText(/^Cost: \d/).waitFor();
    expect(city.segments.all()).to.have.length(segments);
    await build.click();
    await plan.getByText(/^Built segment \d+\.$/).waitFor();
    expect(city.segments.all()).to.have.length(segments + 1);
    expect(city.segments.all().at(-1)?.startNodeId).to.be.oneOf(nodesAt(400, 80));

    await page.getByRole("button", { name: "Zone", exact: true }).click();
    await page.getByRole("combobox", { name: "Zone to build" }).selectOption("Offices");
    await clickAt(420, 130);
    await clickAt(490, 70);
    await plan.getByText(/^[1-9]\d* cells would be changed\.$/).waitFor();
    const offices = () =>
      city.blocks
        .all()
        .flatMap(({ cells }) => [...cells])
        .filter((cell) => cell === 7).length;
    expect(offices()).to.equal(0);
    await build.click();
    await plan.getByText(/^[1-9]\d* cells were changed\.$/).waitFor();
    expect(offices()).to.be.above(0);
    await page.keyboard.press("Escape");
    await plan.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Service", exact: true }).click();
    await page.getByRole("combobox", { name: "Service to build" }).selectOption("Fire House");
    await clickAt(460, 50);
    await plan.getByText("Cost: ").waitFor();
    await build.click();
    await plan.getByText(/^Placed building \d+\.$/).waitFor();
    const house = facility("Fire House");
    await plan.getByRole("button", { name: "Undo" }).click();
    await plan.getByText(`building ${house} was removed.`).waitFor();
    expect(city.buildings.get(house)).to.equal(undefined);
  });

  it("lays a long road in pieces, shows the cells that can be zoned, and undoes all pieces", async () => {
    const { city } = bridge;
    const plan = page.getByRole("region", { name: "Plan" });
    const before = city.segments.all().length;
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await clickAt(400, 80);
    await clickAt(700, 80);
    await plan.getByText("4 segments can be built.").waitFor();
    await plan.getByRole("button", { name: "Build" }).click();
    await plan.getByText("Built 4 segments.").waitFor();
    expect(city.segments.all()).to.have.length(before + 4);
    expect(await count(FREE_CELL)).to.equal(0);
    await page.getByRole("button", { name: "Zone", exact: true }).click();
    await plan.getByText("Grey cells can be zoned.").waitFor();
    await untilCount(FREE_CELL, (pixels) => pixels > 500);
    await page.keyboard.press("Escape");
    await untilCount(FREE_CELL, (pixels) => pixels === 0);
  });

  it("shows which services are closed for debt, and accepts the bailout", async () => {
    const { city } = bridge;
    place(city, "Medical Clinic", 240, -100);
    city.unlimitedMoney = false;
    city.ledger.book("Construction", city.ledger.balanceCents / 100 + 12_000);
    city.frame += TWO_WEEKS_FRAMES / 2 - 1 - (city.frame % (TWO_WEEKS_FRAMES / 2));
    advance(city, 1);
    await page.getByText(/^Closed because the city is in debt: Medical Clinic \(opens again at/).waitFor();
    await page.getByRole("button", { name: "Accept 50,000 from the state, once" }).click();
    await page.locator("#debt").waitFor({ state: "hidden" });
    expect(facility("Medical Clinic")).to.be.above(0);
    expect(city.ledger.totals.Grants).to.equal(5_000_000);
    expect(city.buildings.at(facility("Medical Clinic")).switchedOff).to.equal(false);
  });

  it("shows why a site is rejected", async () => {
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await clickAt(500, 80);
    await clickAt(502, 80);
    await page.getByRole("region", { name: "Plan" }).getByText(/m/).waitFor();
    expect(await page.getByRole("button", { name: "Build", exact: true }).count()).to.equal(0);
    // The browser logs every rejected request as an error.
    complaints = complaints.filter((text) => !text.includes("500"));
  });

  it("moves the map to a clicked problem or command", async () => {
    const turbine = facility("Wind Turbine");
    setBuildingActive.act(bridge.city, { id: turbine, active: false });
    await page.getByRole("button", { name: "Turned off: 1" }).click();
    await page.getByText(`Wind Turbine (Building ${turbine})`).waitFor();
    await untilCount(MARK, (pixels) => pixels > 50);
    await bridge.client.road(400, 300, 520, 300, { roadPrefab: "Basic Road" });
    await page.getByRole("button", { name: "API OK: Build network Basic Road" }).click();
    await page.getByText(/\(Segment \d+\)$/).waitFor();
  });

  it("turns dark at night", async () => {
    for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Zoom in" }).click();
    const light = () => sumOf("red + green + blue");
    const day = await light();
    advance(bridge.city, (8 * TWO_WEEKS_FRAMES) / 2);
    await eventually(light, (now) => now < 0.8 * day);
    await page.getByLabel("Day and night").uncheck();
    await eventually(light, (now) => now > 0.9 * day);
  });

  it("moves and zooms by keyboard, wheel and mouse", async () => {
    const atFirst = await count(HOME);
    await page.locator("#map").focus();
    await page.keyboard.press("+");
    const nearer = await untilCount(HOME, (pixels) => pixels > atFirst);
    await page.mouse.move(400, 400);
    await page.mouse.wheel(0, -100);
    await untilCount(HOME, (pixels) => pixels !== nearer);
    await page.mouse.down();
    await page.mouse.move(5000, 400);
    await page.mouse.up();
    await untilCount(HOME, (pixels) => pixels === 0);
    await page.getByRole("button", { name: "Whole city" }).click();
    await untilCount(HOME, (pixels) => pixels === atFirst);
    expect(await count(HIGHWAY)).to.be.above(0);
  });

  it("the page has no axe violations, also with details and a dialog open", async () => {
    const barriers = async () => {
      const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
    };
    await page.evaluate(axe.source);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.getByRole("button", { name: "Road", exact: true }).click();
      await clickAt(400, 80);
      expect(await barriers()).to.deep.equal([]);
      await page.keyboard.press("Escape");
      await clickAt(140, 60);
      await page.getByRole("button", { name: "Bulldoze" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await barriers()).to.deep.equal([]);
      await page.getByRole("button", { name: "Cancel" }).click();
      expect(await barriers()).to.deep.equal([]);
    }
  });

  it("works in front of a running game, and hides layers that only the embedded city has", async () => {
    const game = await startPlainGame(bridge.client.url);
    const front = await startCity(loadConfig({ CITY_BRIDGE_PORT: "0", CITY_GAME_URL: game.url }), SILENT);
    await page.goto(front.url);
    await untilCount(HOME, (pixels) => pixels > 0);
    await page.getByLabel("Terrain and water").waitFor({ state: "hidden" });
    expect(await page.getByLabel("Zones").isVisible()).to.equal(false);
    expect(await page.getByLabel("Services").isVisible()).to.equal(true);
    await page.getByText("A running game shows its messages itself.").waitFor();
    // Leave the page, because it would keep sending requests and logging errors.
    await page.goto("about:blank");
    expect(complaints.every((text) => text.includes("404"))).to.equal(true);
    complaints = [];
    await front.close();
    await game.close();
  });

  /** Zooms out to the whole city and clicks on a point of it. */
  async function clickAt(x: number, z: number): Promise<void> {
    const box = (await page.locator("#map").boundingBox()) as { width: number; height: number };
    const places = [
      ...bridge.city.segments
        .all()
        .filter(({ prefab }) => !prefab.name.startsWith("Highway"))
        .flatMap(({ start, end }) => [start, end]),
      ...bridge.city.buildings.all().map(({ position }) => position),
    ];
    const middle = (values: number[]) => (Math.min(...values) + Math.max(...values)) / 2;
    const extent = (values: number[]) => Math.max(...values) - Math.min(...values) + 120;
    const [xs, zs] = [places.map((place) => place.x), places.map((place) => place.z)];
    const scale = Math.min(box.width / extent(xs), box.height / extent(zs));
    const position = {
      x: box.width / 2 + (x - middle(xs)) * scale,
      y: box.height / 2 - (z - middle(zs)) * scale,
    };
    await page.getByRole("button", { name: "Whole city" }).click();
    await page.locator("#map").click({ position });
  }

  function nodesAt(x: number, z: number): number[] {
    const near = bridge.city.nodes.all().filter(({ position }) => position.x === x && position.z === z);
    return near.map(({ id }) => id);
  }

  function facility(prefab: string): number {
    const found = bridge.city.buildings.all().find((building) => building.prefab.name === prefab);
    if (!found) throw new Error(`the town has no ${prefab}`);
    return found.id;
  }
});

describe("endpoints for the page", () => {
  const bridge = bridgeForEach({ map: "empty" });

  it("the bridge serves the page with a strict Content-Security-Policy, and only files of the page", async () => {
    const response = await fetch(bridge.client.url);
    expect(response.headers.get("content-type")).to.match(/^text\/html/);
    expect(response.headers.get("content-security-policy"))
      .to.include("default-src 'none'")
      .and.not.include("unsafe");
    expect((await fetch(`${bridge.client.url}/page/..%2findex.js`)).status).to.be.within(400, 499);
  });

  it("/state/zone-blocks returns the zone of every cell", async () => {
    const { client } = bridge;
    await client.road(0, 0, 80, 0);
    await client.run("set-zone", { zone: "Office", center: { x: 40, z: 20 }, radius: 30 });
    const { total, blocks } = await client.state("/state/zone-blocks");
    const tally = await client.state("/state/zones");
    expect(total).to.equal(tally.zoneBlockCount);
    const cells = blocks.map((block: { cells: string }) => block.cells).join("");
    expect(cells).to.have.length(tally.totalCells);
    expect(blocks[0]).to.not.have.property("usable");
    const { blocks: known } = await client.state("/state/zone-blocks?usable=true");
    const usable = known.map((block: { usable: string }) => block.usable).join("");
    expect(usable).to.have.length(cells.length).and.match(/^1+$/);
    expect(cells.replaceAll(/[^7]/g, "")).to.have.length(tally.zonedCells).and.not.be.empty;
  });

  it("/state/terrain/grid returns terrain and water of the whole map", async () => {
    const { city, client } = bridge;
    const land = await client.state("/state/terrain/grid");
    const { halfSizeMeters, spacingMeters, samplesPerRow, heights, waterDepths } = land;
    expect(heights).to.have.length(samplesPerRow ** 2);
    expect(waterDepths).to.have.length(samplesPerRow ** 2);
    expect((samplesPerRow - 1) * spacingMeters).to.equal(2 * halfSizeMeters);
    const wet = waterDepths.findIndex((depth: number) => depth > 5);
    const x = (wet % samplesPerRow) * spacingMeters - halfSizeMeters;
    const z = Math.floor(wet / samplesPerRow) * spacingMeters - halfSizeMeters;
    expect(heights[wet]).to.be.closeTo(city.terrain.groundHeight(x, z), 0.06);
    expect(waterDepths[wet]).to.be.closeTo(
      city.terrain.surfaceHeight(x, z) - city.terrain.groundHeight(x, z),
      0.06,
    );
  });

  it("a read with quiet=true adds no overlay line", async () => {
    const { client } = bridge;
    await client.state("/state/summary?quiet=true");
    await client.get("/state/economy");
    expect((await client.state("/overlay")).messages).to.deep.equal([
      "API OK: Read economy state",
      "API ready: Skylines Agent Bridge",
    ]);
  });
});

/** Imitates the bridge of a running game: the same responses, without the endpoints that only Carillon has. */
async function startPlainGame(cityUrl: string): Promise<{ url: string; close: () => Promise<unknown> }> {
  const server = createServer(async (request, response) => {
    const url = request.url ?? "";
    if (
      /^\/(overlay|state\/(terrain|zone-blocks|map-tiles|layer|coverage|budget|buildings|segments))/.test(url)
    ) {
      response.writeHead(404).end('{"ok":false,"error":"Not found"}');
    } else if (url.startsWith("/health")) {
      response.end('{"ok":true,"mod":"Skylines Agent Bridge","levelLoaded":true,"port":32123}');
    } else {
      response.end(await (await fetch(cityUrl + url)).text());
    }
  });
  const { url } = await listenLocally(server);
  return {
    url,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
