/** Tests the city page in a real browser, served by a real bridge with a small town. */

import { createServer } from "node:http";
import axe from "axe-core";
import { expect } from "chai";
import type { Browser, Page } from "playwright-core";
import { setBuildingActive } from "../../src/city/commands/buildings.js";
import { startCity } from "../../src/city/index.js";
import type { NetSegment } from "../../src/city/simulation/state/entities.js";
import { isFacility } from "../../src/city/views/buildings.js";
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
const FREE_CELL = [0xb5, 0xbf, 0xaa];
/** Colour of the value 100 on a data map where it is good. */
const BEST = [26, 120, 60];
const WATER = [86, 150, 205];
const WATER_PIPE = [0x16, 0x66, 0xc5];

describe("the city page", function () {
  this.timeout(240_000);
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
    page.setDefaultTimeout(150_000);
    complaints = [];
    page.on("console", (message) => {
      const { url } = message.location();
      // Between two reads of the page, the selected building can go.
      const isOfGone = message.text().includes("404") && /\/state\/(buildings|segments)\/\d+/.test(url);
      if (message.type() === "error" && !isOfGone) complaints.push(`${message.text()} ${url}`);
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
  /** @param tolerance difference of each part of the colour that still counts */
  const count = ([red, green, blue]: readonly number[], tolerance = 0) =>
    sumOf(
      `Math.max(Math.abs(red - ${red}), Math.abs(green - ${green}), Math.abs(blue - ${blue})) <= ${tolerance}`,
    );
  /**
   * Counts green pixels: those whose green exceeds red and blue by more than `least`. The map draws homes and
   * high values of data layers in green.
   */
  const greens = (least: number) => sumOf(`green - red > ${least} && green - blue > ${least}`);
  const untilCount = (color: readonly number[], satisfies: (pixels: number) => boolean, tolerance = 0) =>
    eventually(() => count(color, tolerance), satisfies);

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
    await page.getByRole("row", { name: /^Power \d/ }).waitFor();
    const { chirps } = await bridge.client.state("/state/chirps");
    await page.getByText(chirps[0].text).first().waitFor();
  });

  it("shows the first steps before land and lists have arrived, and the tools' choices once they have", async () => {
    await bridge.client.run("new-city", { seed: 1 });
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/\/(prefabs|state\/(terrain|chirps|statistics))/, async (route) => {
      await isReleased;
      await route.continue();
    });
    await page.reload();
    await page.getByRole("button", { name: "Lay a street" }).click();
    await page.getByRole("button", { name: "Build a wind turbine" }).waitFor();
    await page.getByRole("button", { name: "Service", exact: true }).click();
    release();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Fire");
    await page.getByText("Fire House").first().waitFor();
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await page.locator("#choices summary").click();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Bridges");
    await page
      .getByRole("radio", { name: /^Two-Lane Road/ })
      .first()
      .waitFor();
    await page.unrouteAll({ behavior: "wait" });
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

  it("keeps the speed that was chosen just before a pause, also if the first command is slow", async () => {
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(
      "**/commands/set-simulation-speed",
      async (route) => {
        await isReleased;
        await route.continue();
      },
      { times: 1 },
    );
    await page.getByRole("button", { name: "Speed 3" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Pause", pressed: true }).waitFor();
    release();
    const simulation = async () => (await bridge.client.state("/state/summary")).simulation;
    const { paused } = await eventually(simulation, ({ selectedSpeed }) => selectedSpeed === 3);
    if (!paused) await eventually(simulation, (now) => now.paused);
    expect((await simulation()).selectedSpeed).to.equal(3);
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

  it("recovers without a reload when the bridge is back, and tries what was drawn meanwhile", async () => {
    const { port } = new URL(bridge.client.url);
    const status = () => page.locator("#status").textContent();
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await clickAt(-100, 100);
    const position = await pixelOf(100, 100);
    await bridge.restart(Number(port), async () => {
      await eventually(status, (text) => text?.startsWith("The city does not answer.") === true);
      await page.locator("#map").click({ position });
      await page.locator("#hint").getByText("The city does not answer.").waitFor();
    });
    await page.locator("#plan").getByRole("button", { name: "Build" }).waitFor();
    await eventually(status, (text) => text === "");
    await bridge.client.refusal("place-building", { buildingPrefab: "after the return" });
    await page.getByText("API FAIL: Place building after the return").waitFor();
    complaints = complaints.filter((text) => !text.includes("net::ERR_"));
  });

  it("keeps view, tool and selection when the bridge is started again, and says that the undo ends", async () => {
    await clickAt(140, 60);
    await page.getByRole("heading", { name: "Wind Turbine" }).waitFor();
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await clickAt(-100, 100);
    await clickAt(100, 100);
    await page.locator("#plan").getByRole("button", { name: "Build" }).click();
    await page.getByText(/^Built: Two-Lane Road/).waitFor();
    await bridge.game.autosave();
    await bridge.game.resumeCity((error) => {
      throw error;
    });
    await page.getByText(/^The city was started again from its last save\./).waitFor();
    expect(await page.getByRole("button", { name: "Undo" }).isDisabled()).to.equal(true);
    const road = page.getByRole("button", { name: "Road", exact: true });
    expect(await road.getAttribute("aria-pressed")).to.equal("true");
    expect(await page.locator("#details").isVisible()).to.equal(true);
  });

  it("shows and hides layers, and draws data layers with a scale", async () => {
    expect(await count(WATER_PIPE)).to.equal(0);
    await page.getByLabel("Water pipes").check();
    await untilCount(WATER_PIPE, (pixels) => pixels > 100);
    await page.getByLabel("Buildings").uncheck();
    await untilCount(HOME, (pixels) => pixels === 0);
    await page.getByLabel("Buildings").check();
    await untilCount(HOME, (pixels) => pixels > 0);

    await page.getByRole("combobox", { name: "Data map" }).selectOption("power");
    await untilCount(BEST, (pixels) => pixels > 100);
    expect(await count(HOME), "buildings have the colours of the data").to.equal(0);
    const legend = (await page.textContent("#scale"))?.replace(/\s+/g, " ").trim();
    expect(legend).to.equal("0 25 50 75 100 no power power everywhere");
    for (const name of ["landValue", "pollution", "water", "fire", "traffic"]) {
      const answered = page.waitForResponse((response) => response.url().includes(`layer=${name}`));
      await page.getByRole("combobox", { name: "Data map" }).selectOption(name);
      expect((await answered).status()).to.equal(200);
    }
    await page.getByRole("combobox", { name: "Data map" }).selectOption("");
    await untilCount(HOME, (pixels) => pixels > 0);
  });

  it("a slow answer does not replace a newer one", async () => {
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    let layers = 0;
    await page.route("**/state/networks?*", async (route) => {
      await isReleased;
      await route.continue();
    });
    // Only the first data map is answered, so that no later one hides a lost one.
    await page.route("**/state/layer?layer=power*", (route) =>
      layers++ === 0 ? route.continue() : undefined,
    );
    const asked = page.waitForRequest("**/state/networks?*");
    await bridge.client.road(400, 300, 520, 300);
    await asked;
    await page.getByRole("combobox", { name: "Data map" }).selectOption("power");
    await untilCount(BEST, (pixels) => pixels > 100);
    const answered = page.waitForResponse("**/state/networks?*");
    const askedAgain = page.waitForRequest("**/state/layer?layer=power*");
    release();
    await Promise.all([answered, askedAgain]);
    expect(await count(BEST)).to.be.above(100);
    await page.unrouteAll({ behavior: "ignoreErrors" });
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
    await page.getByRole("heading", { name: "Wind Turbine" }).waitFor();
    await page.locator("#details-body").getByText(String(turbine), { exact: true }).first().waitFor();
    const stands = () => bridge.city.buildings.get(turbine) !== undefined;
    await page.locator("#details-body").getByRole("button", { name: "Bulldoze" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator("#confirm").waitFor({ state: "hidden" });
    expect(stands()).to.equal(true);
    await page.locator("#details-body").getByRole("button", { name: "Bulldoze" }).click();
    await page.getByRole("button", { name: "Yes, do it" }).click();
    await eventually(async () => !stands(), Boolean);
    await page.getByText("Removed: Wind Turbine.").waitFor();
    await page.keyboard.press("Control+z");
    await eventually(async () => stands(), Boolean);
    await clickAt(400, 200);
    await page.locator("#details-body").getByText("Two-Lane Road").waitFor();
    await untilCount(MARK, (pixels) => pixels > 50);
    await clickAt(600, 200);
    await page.getByText("Services that reach this place").waitFor();
    await page.locator("#details-body").getByText("High schools").waitFor();
    await page.getByRole("button", { name: "Close details" }).click();
    await page.locator("#details").waitFor({ state: "hidden" });
    await untilCount(MARK, (pixels) => pixels === 0);

    await page.locator("aside").evaluate((side) => side.scrollTo(0, 300));
    // The map shows the turbine again once it has read the city after the undo.
    await eventually(async () => {
      await clickAt(140, 60);
      return page.getByRole("heading", { name: "Wind Turbine" }).isVisible();
    }, Boolean);
    await eventually(
      () => page.locator("aside").evaluate((side) => side.scrollTop),
      (top) => top === 0,
    );
    await bridge.client.run("bulldoze", { entityType: "building", id: turbine });
    await page.getByText("This building is not in the city any more.").waitFor();
  });

  it("draws a cell that two blocks share once, as a part of the older one", async () => {
    const { client } = bridge;
    await client.road(480, 200, 480, 320);
    await client.road(480, 200, 580, 260);
    const area = { from: { x: 380, z: 120 }, to: { x: 680, z: 420 } };
    await client.run("zone-rectangle", { ...area, zone: "Office" });
    await untilCount([140, 216, 192], (pixels) => pixels > 1000, 8);
    expect(await count([106, 212, 194], 8), "drawn twice").to.be.below(20);
  });

  it("draws a road and a zone, places a service, and undoes all of it with the money back", async () => {
    const { city } = bridge;
    const plan = page.getByRole("region", { name: "Plan" });
    const hint = page.locator("#hint");
    const before = {
      segments: city.segments.size,
      buildings: city.buildings.size,
      balance: city.ledger.balanceCents,
    };
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await drag([400, 80], [700, 80]);
    await plan.getByText(/^\d+ m of Two-Lane Road: 1,[45]\d\d\.$/).waitFor();
    expect(city.segments.size).to.equal(before.segments);
    await page.keyboard.press("Enter");
    await hint
      .getByText(/^Built: Two-Lane Road: 1,[45]\d\d\. Undo within a minute pays it back\.$/)
      .waitFor();
    expect(city.segments.size).to.equal(before.segments + 4);

    expect(await count(FREE_CELL, 5)).to.be.below(500);
    await page.getByRole("button", { name: "Zone", exact: true }).click();
    await hint.getByText("Grey squares can be zoned.").waitFor();
    await untilCount(FREE_CELL, (pixels) => pixels > 1500, 5);
    await page.getByRole("radio", { name: "Offices" }).check();
    await clickAt(420, 130);
    await clickAt(490, 70);
    await plan.getByText(/^[1-9]\d* squares become: Offices\. Zoning is free\.$/).waitFor();
    const offices = () =>
      city.blocks
        .all()
        .flatMap(({ cells }) => [...cells])
        .filter((cell) => cell === 7).length;
    expect(offices()).to.equal(0);
    await plan.getByRole("button", { name: "Zone" }).click();
    await hint.getByText(/^Zoned: Offices\./).waitFor();
    expect(offices()).to.be.above(0);

    await page.getByRole("button", { name: "Service", exact: true }).click();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Landmarks");
    await page.getByText("Statue of Wealth").waitFor();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Fire");
    await page
      .getByText("12,000, 560 a week. Puts fires out, within 900 m; needs power, water, sewage.")
      .waitFor();
    await page.getByRole("radio", { name: "Fire House" }).check();
    await clickAt(460, 50);
    await plan.getByText("Fire House: 12,000, 560 a week.").waitFor();
    await plan.getByRole("button", { name: "Build" }).click();
    await hint.getByText("Built: Fire House: 12,000.").waitFor();
    expect(facility("Fire House")).to.be.above(0);

    await page.getByRole("button", { name: "Undo" }).click();
    await hint.getByText("Undone: Fire House. 12,000 came back.").waitFor();
    await page.keyboard.press("Control+z");
    await hint.getByText("Undone: Offices.").waitFor();
    expect(offices()).to.equal(0);
    await page.getByRole("button", { name: "Undo" }).click();
    await hint.getByText(/^Undone: Two-Lane Road\. 1,[45]\d\d came back\.$/).waitFor();
    const { segments, buildings, ledger } = city;
    expect({
      segments: segments.size,
      buildings: buildings.size,
      balance: ledger.balanceCents,
    }).to.deep.equal(before);
    expect(await page.getByRole("button", { name: "Undo" }).isDisabled()).to.equal(true);
  });

  it("a large building takes the nearest free place, and the plan shows its ground", async () => {
    bridge.city.unlimitedMoney = true;
    await page.getByRole("button", { name: "Service", exact: true }).click();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Power");
    await page.getByRole("radio", { name: "Nuclear Power Plant" }).check();
    const marked = await count(MARK);
    await clickAt(280, 0);
    const plan = page.getByRole("region", { name: "Plan" });
    await plan.getByText(/^Nuclear Power Plant: /).waitFor();
    expect(await plan.textContent()).to.not.include("stands on");
    expect((await count(MARK)) - marked, "an outline").to.be.above(200);
  });

  it("shows pipes while they are laid, and bulldozes only what is seen", async () => {
    const pipe = bridge.city.segments.all().find(({ prefab }) => prefab.carries === "water");
    const { start, end } = pipe as NetSegment;
    const place = [(start.x + end.x) / 2, (start.z + end.z) / 2] as const;
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await page.locator("#choices summary").click();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Pipes");
    await untilCount(WATER_PIPE, (pixels) => pixels > 100);
    await page.getByLabel("Water pipes").uncheck();
    await page.getByRole("button", { name: "Bulldoze", exact: true }).click();
    await clickAt(...place);
    await page
      .locator("#hint, #plan")
      .getByText(/Neither a building|Bulldoze (?!Water Pipe)/)
      .first()
      .waitFor();
    await page.getByLabel("Water pipes").check();
    for (const layer of ["Roads and paths", "Buildings", "Services"]) await page.getByLabel(layer).uncheck();
    await clickAt(...place);
    await page.locator("#plan").getByText("Bulldoze Water Pipe?").waitFor();
  });

  it("bulldozes what is clicked, and says why an undo is refused", async () => {
    const { city, client } = bridge;
    const hint = page.locator("#hint");
    await page.getByRole("button", { name: "Service", exact: true }).click();
    await page.getByRole("combobox", { name: "Kind" }).selectOption("Parks");
    await clickAt(420, 230);
    await page.getByRole("region", { name: "Plan" }).getByRole("button", { name: "Build" }).click();
    await hint.getByText("Built: Small Park: 3,000.").waitFor();
    await client.run("bulldoze", { entityType: "building", id: facility("Regular Park") });
    await page.getByRole("button", { name: "Undo" }).click();
    await hint.getByText(/^Small Park cannot be undone: .* has changed/).waitFor();
    complaints = complaints.filter((text) => !text.includes("status of 500"));

    const turbine = facility("Wind Turbine");
    await page.getByRole("button", { name: "Bulldoze", exact: true }).click();
    await clickAt(140, 60);
    await page.getByText("Bulldoze Wind Turbine? Undo within a minute brings it back.").waitFor();
    expect(city.buildings.get(turbine)).to.not.equal(undefined);
    await page.locator("#map").focus();
    await page.keyboard.press("Enter");
    await hint.getByText("Removed: Wind Turbine. Undo within a minute brings it back.").waitFor();
    expect(city.buildings.get(turbine)).to.equal(undefined);
    await page.getByRole("button", { name: "Undo" }).click();
    await hint.getByText("Undone: Wind Turbine.").waitFor();
    expect(city.buildings.get(turbine)).to.not.equal(undefined);
  });

  it("leaves the view alone when the first street is drawn by hand", async () => {
    await bridge.client.run("new-city", { seed: 1 });
    await page.reload();
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    const water = await untilCount(WATER, (pixels) => pixels > 1000);
    await page.getByRole("button", { name: "Road", exact: true }).click();
    await page.locator("#map").click({ position: { x: 300, y: 300 } });
    await page.locator("#map").click({ position: { x: 500, y: 300 } });
    await page.getByText("Warning: The new road is not joined to any other road").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Join a street to the highway. Nobody can move in without a way.").waitFor();
    await untilCount(SMALL_ROAD, (pixels) => pixels > 50);
    expect(await count(WATER)).to.be.within(0.9 * water, 1.1 * water);
  });

  it("says which parts of a step were undone, and which were not", async () => {
    const { city, client } = bridge;
    await client.run("new-city", { seed: 1 });
    // The page forgets the undo of a city once it has read another one.
    await page.reload();
    await page.getByRole("button", { name: "Lay a street" }).click();
    await page.getByRole("button", { name: "Build a wind turbine" }).click();
    await page.getByRole("button", { name: "Build a wind turbine" }).waitFor({ state: "detached" });
    const world = bridge.game.world ?? city;
    const [line] = world.segments.all().filter(({ prefab }) => prefab.carries === "power");
    await client.run("bulldoze", { entityType: "netSegment", id: line?.id });
    await page.getByRole("button", { name: "Undo" }).click();
    await page
      .locator("#hint")
      .getByText(
        /^Undone in part: Build a wind turbine\. [\d,]+ came back\. Undone: (\d+ x )?Power Line, Wind Turbine\. Not undone: Power Line: Segment \d+ has changed/,
      )
      .waitFor();
    expect(world.buildings.size).to.equal(0);
    complaints = complaints.filter((text) => !text.includes("status of 500"));
  });

  it("begins a new city, forgets the old one, and leads to its first homes; saves and loads", async () => {
    const dialog = page.getByRole("dialog", { name: "New, save, load" });
    await clickAt(140, 60);
    await page.getByRole("heading", { name: "Wind Turbine" }).waitFor();
    await page.getByRole("button", { name: "New, save, load" }).click();
    await dialog.getByLabel("Name").fill("Old town");
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await dialog.getByText('"Old town" is saved.').waitFor();
    await dialog.getByLabel("Land number").fill("1");
    await dialog.getByRole("button", { name: "New city" }).click();
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    await page.locator("#details").waitFor({ state: "hidden" });
    await untilCount(HOME, (pixels) => pixels === 0);
    await untilCount(WATER, (pixels) => pixels > 1000);
    expect(await page.textContent("#course-weeks")).to.equal("of 0 weeks");
    const steps = [
      ["Lay a street"],
      ["Build a wind turbine", "Build a water tower", "Build a treatment plant"],
      ["Zone homes"],
      ["Start the clock"],
    ].map((names) => names.map((name) => page.getByRole("button", { name, exact: true })));
    for (const step of steps) {
      for (const press of step) await press.click();
      for (const press of step) await press.waitFor({ state: "detached" });
    }
    const world = bridge.game.world;
    expect(world?.seed).to.equal(1);
    expect(world?.paused).to.equal(false);
    expect(world?.buildings.all().filter(isFacility)).to.have.length(3);
    expect(world?.blocks.all().some(({ cells }) => cells.includes(2))).to.equal(true);

    await page.getByRole("button", { name: "New, save, load" }).click();
    await dialog.getByRole("button", { name: "Load Old town" }).click();
    await dialog.waitFor({ state: "hidden" });
    await untilCount(HOME, (pixels) => pixels > 0);
    await page.getByRole("img", { name: /^Citizens over 2 weeks/ }).waitFor();
    // Another tab or program begins another city.
    await page.getByRole("button", { name: /^Money/ }).click();
    await bridge.client.run("new-city", { seed: 2 });
    await page.getByRole("dialog", { name: "Taxes and loans" }).waitFor({ state: "hidden" });
    await page.getByText("Another city is loaded.").waitFor();
    await untilCount(HOME, (pixels) => pixels === 0);
    await page.getByRole("heading", { name: "First steps" }).waitFor();
  });

  it("shows the money of now; sets taxes, takes and repays loans", async () => {
    const { city } = bridge;
    const money = async () => Number((await page.textContent("#balance"))?.replace(/,/g, ""));
    city.ledger.book("Grants", 1234);
    const shown = Math.round(city.ledger.balanceCents / 100);
    await eventually(money, (amount) => amount === shown);
    await page.getByRole("button", { name: /^Money/ }).click();
    await page.getByLabel("Shops, high").fill("11");
    await page.keyboard.press("Tab");
    await eventually(
      async () => city.taxes.rate("CommercialHigh", 3),
      (rate) => rate === 11,
    );
    expect(city.taxes.rate("CommercialLow", 1)).to.equal(9);
    await page.getByRole("button", { name: "Borrow from Regional Trust" }).click();
    await page.getByText("665 a week, 104 weeks left").waitFor();
    await eventually(money, (amount) => amount === shown + 60_000);
    await page.getByRole("button", { name: "Pay back 69,160 to Regional Trust" }).click();
    await eventually(
      async () => city.ledger.loans.length,
      (loans) => loans === 0,
    );
  });

  it("says for a while why a command was refused; empty and refused taxes change nothing", async () => {
    const { city } = bridge;
    let isRefused = true;
    await page.route("**/commands/*", async (route) => {
      if (isRefused)
        await route.fulfill({ status: 500, json: { ok: false, error: "The treasury is closed" } });
      else await route.fulfill({ status: 503, body: "<h1>Down</h1>" });
    });
    await page.getByRole("button", { name: "Speed 2" }).click();
    const status = page.locator("#status");
    await status.getByText("The treasury is closed").waitFor();
    const reads = { count: 0 };
    page.on("response", (response) => {
      if (response.url().includes("/state/summary")) reads.count++;
    });
    await eventually(
      async () => reads.count,
      (count) => count > 2,
    );
    expect(await status.textContent()).to.equal("The treasury is closed");
    isRefused = false;
    await page.getByRole("button", { name: "Speed 3" }).click();
    await status.getByText("The city does not answer.").waitFor();

    await page.getByRole("button", { name: /^Money/ }).click();
    const tax = page.getByLabel("Shops, high");
    await tax.fill("12");
    await page.keyboard.press("Enter");
    await page.locator("#treasury-status").getByText("The city does not answer.").waitFor();
    await eventually(
      () => tax.inputValue(),
      (value) => value === "9",
    );
    await page.getByRole("button", { name: "Borrow from Regional Trust" }).click();
    await page.unroute("**/commands/*");
    await page.getByRole("button", { name: "Borrow from Regional Trust" }).click();
    await page.getByText("665 a week, 104 weeks left").waitFor();
    await tax.fill("");
    await page.keyboard.press("Tab");
    await tax.fill("11");
    await page.keyboard.press("Enter");
    await eventually(
      async () => city.taxes.rate("CommercialHigh", 3),
      (rate) => rate === 11,
    );
    await eventually(
      () => tax.evaluate((input) => input === document.activeElement),
      (isFocused) => isFocused,
    );
    complaints = complaints.filter((text) => !/status of 50[03]/.test(text));
  });

  it("asks before a save replaces another one, and names a save as it is listed", async () => {
    const dialog = page.getByRole("dialog", { name: "New, save, load" });
    await bridge.client.run("save", { name: "Old town" });
    await page.getByRole("button", { name: "New, save, load" }).click();
    await dialog.getByText("Old town").waitFor();
    const save = async (name: string) => {
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByRole("button", { name: "Save", exact: true }).click();
    };
    await save("Old town");
    await page.getByText('Replace the saved city "Old town"?').waitFor();
    await page.getByRole("button", { name: "Yes, do it" }).click();
    await dialog.getByText('"Old town" is saved.').waitFor();
    await save("Old town");
    await dialog.getByText('"Old town" is saved.').waitFor();
    for (const refused of ["town/2", "  "]) {
      await save(refused);
      expect(await dialog.locator("#save-name:invalid").count(), refused).to.equal(1);
    }
    await save("Nagar \u0928\u0917\u0930\u0940");
    await dialog.getByText('"Nagar \u0928\u0917\u0930\u0940" is saved.').waitFor();

    // A new city does not take the place of the one that was saved before.
    await dialog.getByLabel("Land number").fill("1");
    await dialog.getByRole("button", { name: "New city" }).click();
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    await page.getByRole("button", { name: "New, save, load" }).click();
    await save("Old town");
    await page.getByText('Replace the saved city "Old town"?').waitFor();
  });

  it("keeps the details of a selected building up to date", async () => {
    await clickAt(140, 60);
    await page.getByRole("heading", { name: "Wind Turbine" }).waitFor();
    setBuildingActive.act(bridge.city, { id: facility("Wind Turbine"), active: false });
    await page.locator("#details").getByRole("button", { name: "Switch on" }).waitFor();
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
    await page.locator("#hint").getByText(/\d m/).waitFor();
    expect(await page.getByRole("button", { name: "Build", exact: true }).count()).to.equal(0);
    // The browser logs every rejected request as an error.
    complaints = complaints.filter((text) => !text.includes("status of 500"));
  });

  it("moves the map to a clicked problem or command", async () => {
    const turbine = facility("Wind Turbine");
    setBuildingActive.act(bridge.city, { id: turbine, active: false });
    await page.getByRole("button", { name: "Switched off: 1", exact: true }).click();
    await page.getByRole("heading", { name: "Wind Turbine" }).waitFor();
    await untilCount(MARK, (pixels) => pixels > 50);
    await bridge.client.road(400, 300, 520, 300, { roadPrefab: "Basic Road" });
    await page.getByRole("button", { name: "API OK: Build network Basic Road" }).click();
    await page.locator("#details-body").getByText("Two-Lane Road").waitFor();
  });

  it("turns dark at night", async () => {
    for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Zoom in" }).click();
    const light = () => sumOf("red + green + blue");
    await page.getByLabel("Day and night").check();
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
    // Edges between pixels are blended, and not alike each time.
    await untilCount(HOME, (pixels) => Math.abs(pixels - atFirst) < 0.05 * atFirst);
    expect(await count(HIGHWAY)).to.be.above(0);
  });

  /** Violations of axe in a part of the page, with its rule for the size of targets. */
  const barriers = async (on: Page, part = "html") => {
    await on.evaluate(axe.source);
    const run = `axe.run("${part}", { rules: { "target-size": { enabled: true } } })`;
    const { violations } = (await on.evaluate(run)) as axe.AxeResults;
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  };

  it("the page has no axe violations, also with tools, details and dialogs open", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await clickAt(140, 60);
      await page.locator("#details-body").getByRole("button", { name: "Bulldoze" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await barriers(page, "#confirm")).to.deep.equal([]);
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Service", exact: true }).click();
      await clickAt(420, 230);
      await page.getByRole("region", { name: "Plan" }).waitFor();
      await page.locator("#chosen").click();
      expect(await barriers(page)).to.deep.equal([]);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      for (const [name, dialog] of [
        [/^Money/, "#treasury"],
        ["New, save, load", "#city-dialog"],
      ] as const) {
        await page.getByRole("button", { name }).click();
        expect(await barriers(page, dialog)).to.deep.equal([]);
        await page.keyboard.press("Escape");
      }
    }
  });

  it("an open tool leaves the map on a phone, which is told to tap; a low window shows the map", async () => {
    const context = await browser.newContext({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    const phone = await context.newPage();
    await phone.goto(bridge.client.url);
    await phone.locator("#chirps li").first().waitFor();
    expect(await barriers(phone)).to.deep.equal([]);
    await phone.getByRole("button", { name: "Service", exact: true }).tap();
    await phone
      .locator("#hint")
      .getByText(/^Tap near a road/)
      .waitFor();
    expect(await phone.locator("aside").isVisible()).to.equal(false);
    const map = (await phone.locator("#map").boundingBox()) as {
      x: number;
      y: number;
      width: number;
      height: number;
    };
    expect(map.height).to.be.above(600);
    await phone.touchscreen.tap(map.x + map.width / 2, map.y + map.height / 4);
    await phone
      .getByRole("region", { name: "Plan" })
      .or(phone.locator("#hint").getByText("cannot"))
      .first()
      .waitFor();
    const covered = (await phone.locator("#choices").boundingBox())?.height ?? 0;
    expect(covered, "the list is folded").to.be.below(60);
    await phone.setViewportSize({ width: 360, height: 225 });
    const low = (await phone.locator("#map").boundingBox()) as { height: number };
    expect(low.height).to.be.above(180);
    expect(await phone.evaluate("document.documentElement.scrollWidth <= 360")).to.equal(true);
    await context.close();
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
    expect(await page.getByRole("heading", { name: "Advice" }).isVisible()).to.equal(false);
    await page.getByRole("button", { name: "Taxes" }).click();
    await page.getByLabel("Industry").last().waitFor();
    expect(await page.locator("#loans li").count()).to.equal(0);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "New, save, load" }).click();
    await page.getByRole("button", { name: "Save", exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "New city" }).isVisible()).to.equal(false);
    // Leave the page, because it would keep sending requests and logging errors.
    await page.goto("about:blank");
    expect(complaints.every((text) => text.includes("404"))).to.equal(true);
    complaints = [];
    await front.close();
    await game.close();
  });

  /** Zooms out to the whole city and clicks on a point of it. */
  async function clickAt(x: number, z: number): Promise<void> {
    const position = await pixelOf(x, z);
    await page.getByRole("button", { name: "Whole city" }).click();
    await page.locator("#map").click({ position });
  }

  /** Zooms out to the whole city and draws a line. */
  async function drag(from: [x: number, z: number], to: [x: number, z: number]): Promise<void> {
    await page.getByRole("button", { name: "Whole city" }).click();
    const box = (await page.locator("#map").boundingBox()) as { x: number; y: number };
    const [start, end] = [await pixelOf(...from), await pixelOf(...to)];
    await page.mouse.move(box.x + start.x, box.y + start.y);
    await page.mouse.down();
    await page.mouse.move(box.x + end.x, box.y + end.y, { steps: 3 });
    await page.mouse.up();
  }

  /** Point of the map's canvas while it shows the whole city. */
  async function pixelOf(x: number, z: number): Promise<{ x: number; y: number }> {
    const box = (await page.locator("#map").boundingBox()) as { y: number; width: number; height: number };
    const tools = (await page.locator("#tools").boundingBox()) as { y: number };
    const height = tools.y - box.y;
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
    const scale = Math.min(box.width / extent(xs), height / extent(zs));
    return {
      x: box.width / 2 + (x - middle(xs)) * scale,
      y: height / 2 - (z - middle(zs)) * scale,
    };
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

  it("compresses lists for browsers, and not for programs", async () => {
    const encoding = async (headers: Record<string, string>) => {
      const response = await fetch(`${bridge.client.url}/prefabs/buildings`, { headers });
      expect((await response.json()).buildings).to.have.length.above(50);
      return response.headers.get("content-encoding");
    };
    expect(await encoding({})).to.equal(null);
    expect(await encoding({ "Sec-Fetch-Site": "same-origin", "Accept-Encoding": "br" })).to.equal("br");
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
      /^\/(overlay|state\/(terrain|zone-blocks|map-tiles|layer|coverage|budget|advice|statistics|buildings|segments))/.test(
        url,
      )
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
