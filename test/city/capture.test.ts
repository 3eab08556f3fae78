import { inflateSync } from "node:zlib";
import { expect } from "chai";
import { setBuildingActive } from "../../src/city/commands/buildings.js";
import { bridgeForEach } from "./bridge.js";
import { advance, fingerprint, place, smallTown } from "./simulation/towns.js";

/** Palette colours of the map as "red,green,blue". */
const OFF_MAP = "40,44,42";
const PLAIN = "238,240,233";
const SMALL_ROAD = "163,166,163";
const WATER_PIPE = "22,102,197";
const HIGHWAY = "224,145,58";
const SERVICE = "122,79,176";
const HOMES = "199,231,167";
const GOOD = "26,120,60";

/** Decodes a PNG with indexed colours and unfiltered rows. */
function readPng(bytes: Buffer) {
  expect(bytes.subarray(1, 4).toString()).to.equal("PNG");
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    chunks.set(bytes.toString("latin1", at + 4, at + 8), bytes.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const header = chunks.get("IHDR") as Buffer;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(chunks.get("IDAT") as Buffer);
  const palette = chunks.get("PLTE") as Buffer;
  const colorAt = (column: number, row: number) => {
    const index = rows[row * (width + 1) + 1 + column] as number;
    return [...palette.subarray(3 * index, 3 * index + 3)].join();
  };
  return { width, height, colorAt };
}

describe("pictures from GET /capture", () => {
  const bridge = bridgeForEach({ map: "highway" });

  async function picture(query: string) {
    const response = await fetch(`${bridge.client.url}/capture?${query}`);
    expect(response.status).to.equal(200);
    expect(response.headers.get("content-type")).to.equal("image/png");
    expect(response.headers.get("access-control-allow-origin")).to.equal("*");
    const bytes = Buffer.from(await response.arrayBuffer());
    return { ...readPng(bytes), headers: response.headers, bytes };
  }

  it("draws the requested area, north up", async () => {
    smallTown(bridge.city);
    // One pixel is one metre, and the middle of the picture is at (400, 300).
    const { width, height, colorAt, headers } = await picture("x=400&z=300&size=512&pixels=512");
    const at = (x: number, z: number) => colorAt(x - 400 + 256, 300 - z + 256);
    expect([width, height]).to.deep.equal([512, 512]);
    expect(at(400, 200)).to.equal(SMALL_ROAD);
    expect(at(200, 80)).to.equal(SMALL_ROAD);
    expect(at(370, 522)).to.equal(HIGHWAY);
    expect(at(440, 200)).to.equal(PLAIN);
    expect(at(200, 60)).to.equal(HOMES);
    const town = await picture("x=160&z=40&size=256&pixels=256");
    expect(town.colorAt(128 + 100, 128)).to.equal(WATER_PIPE);
    expect(town.colorAt(128 - 20, 128 - 20)).to.equal(SERVICE);
    expect(headers.get("x-bridge-info-mode")).to.equal("None");
    expect(Number(headers.get("x-bridge-distinct-colors"))).to.be.above(5);
  });

  it("draws data layers without changing the city", async () => {
    smallTown(bridge.city);
    advance(bridge.city, 8192);
    const before = fingerprint(bridge.city);
    const { layers, cells } = await bridge.client.state("/state/layer?layer=power");
    expect(layers).to.include("landValue");
    expect(cells.length).to.be.above(3);
    const [{ x, z, value }] = cells;
    expect(value).to.equal(100);
    const { colorAt, headers } = await picture(`x=${x}&z=${z}&size=400&pixels=100&mode=Electricity`);
    expect(headers.get("x-bridge-info-mode")).to.equal("Electricity");
    const colors = [...Array(100).keys()].map((i) => colorAt(i, 50));
    expect(colors).to.include(GOOD);
    for (const mode of ["LandValue", "Pollution", "Water", "CrimeRate", "FireSafety", "Education"]) {
      expect((await picture(`x=280&z=40&mode=${mode}&pixels=64`)).width).to.equal(64);
    }
    expect(fingerprint(bridge.city)).to.equal(before);
    expect((await bridge.client.state("/overlay")).messages[0]).to.equal("API OK: Capture map");
  });

  it("draws areas that extend beyond the map, and rejects blank areas and unknown modes", async () => {
    const edge = await picture("x=8640&z=0&size=1000&pixels=100");
    expect(edge.colorAt(90, 10)).to.equal(OFF_MAP);
    expect(edge.colorAt(10, 10)).to.not.equal(OFF_MAP);
    const { client } = bridge;
    for (const [query, error] of [
      ["x=90000", /area at 90000, 0 is blank/],
      ["mode=Love", /Love.*LandValue/],
    ] as const) {
      const { status, body } = await client.get(`/capture?${query}`);
      expect([status, body.ok]).to.deep.equal([500, false]);
      expect(body.error).to.match(error);
    }
    expect((await picture("x=90000&pixels=16&allowBlank=true")).colorAt(8, 8)).to.equal(OFF_MAP);
    const huge = await picture("pixels=99999&size=99999999");
    expect(huge.width).to.equal(1024);
    bridge.game.unloadCity();
    expect((await client.get("/capture")).status).to.equal(409);
  });
});

describe("list of services that reach a place", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("lists each service with its building and distance", async () => {
    const { city } = bridge;
    smallTown(city);
    const id = place(city, "Fire House", 200, -40);
    advance(city, 2048);
    const { samples } = await bridge.client.state("/state/coverage?points=200,40;-5000,-5000");
    const of = (sample: { services: { service: string }[] }, name: string) =>
      sample.services.find(({ service }) => service === name);
    expect(of(samples[0], "fire")).to.include({ providerId: id, quality: 1 });
    expect(of(samples[1], "fire")).to.deep.equal({
      service: "fire",
      providerId: 0,
      distanceMeters: null,
      quality: 0,
    });
    setBuildingActive.act(city, { id, active: false });
    const after = await bridge.client.state("/state/coverage?x=200&z=40");
    expect(of(after.samples[0], "fire")).to.include({ providerId: 0, quality: 0 });
  });
});
