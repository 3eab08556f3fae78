/** Towns for tests, built with the city's commands. */

import { placeBuilding } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { paintCircle } from "../../../src/city/commands/zones.js";
import { moveIn } from "../../../src/city/simulation/fabric/citizens.js";
import { layStarterMap } from "../../../src/city/simulation/fabric/starter-map.js";
import { setCells } from "../../../src/city/simulation/fabric/zone-blocks.js";
import { growOnBlock } from "../../../src/city/simulation/life/growth.js";
import { capturePieces, writeCapture } from "../../../src/city/simulation/saves/capture.js";
import { faultsOf } from "../../../src/city/simulation/saves/integrity.js";
import { readSave } from "../../../src/city/simulation/saves/save-files.js";
import { restoreInPieces } from "../../../src/city/simulation/saves/snapshot.js";
import type { ZoneBlock } from "../../../src/city/simulation/state/entities.js";
import { World } from "../../../src/city/simulation/state/world.js";
import { tick } from "../../../src/city/simulation/tick.js";
import { inOneGo } from "../../../src/city/steps.js";
import { type BuildingFlag, FLAG, type ProblemName, ZONES, type Zone } from "../../../src/city/terms.js";

/** A new city with unlimited money and without saves. Only `advance` moves its clock. */
export function newCity(map: "highway" | "empty" = "highway", seed = 7): World {
  const world = new World(seed);
  world.unlimitedMoney = true;
  if (map === "highway") layStarterMap(world);
  return world;
}

export function advance(city: World, frames: number): void {
  for (let i = 0; i < frames; i++) tick(city);
}

export function road(x: number, z: number, toX: number, toZ: number, roadPrefab = "Basic Road") {
  return {
    dryRun: false,
    roadPrefab,
    start: { x, y: 0, z },
    end: { x: toX, y: 0, z: toZ },
    name: "",
    snapDistance: null,
    split: false,
  };
}

export function place(city: World, buildingPrefab: string, x: number, z: number, angleDegrees = 0): number {
  const fields = {
    dryRun: false,
    buildingPrefab,
    position: { x, z },
    angleDegrees,
    suggest: false,
    strict: false,
  };
  return (placeBuilding.act(city, fields) as { buildingId: number }).buildingId;
}

/** Sets the zones of a block's first cells directly, because no command can zone single cells. */
export function paintCells(world: World, block: ZoneBlock, zones: readonly number[]): void {
  setCells(
    world,
    block,
    block.cells.map((cell, i) => zones[i] ?? cell),
  );
}

export function zone(city: World, name: string, x: number, z: number, radius = 40): number {
  const fields = {
    dryRun: false,
    preserveOccupied: false,
    zone: name,
    center: { x, z },
    radius,
  };
  return paintCircle(city, fields).changedCells;
}

/** Lays a grid of streets with crossings every 80 m, the first at (x0, z0). */
export function layLattice(city: World, x0: number, z0: number, columns: number, rows: number): void {
  const step = 80;
  for (let row = 0; row <= rows; row++) {
    for (let i = 0; i < columns; i++) {
      const z = z0 + row * step;
      buildNetwork.act(city, road(x0 + i * step, z, x0 + (i + 1) * step, z));
    }
  }
  for (let column = 0; column <= columns; column++) {
    for (let i = 0; i < rows; i++) {
      const x = x0 + column * step;
      buildNetwork.act(city, road(x, z0 + i * step, x, z0 + (i + 1) * step));
    }
  }
}

export function connectToHighway(city: World, x: number, z: number): void {
  buildNetwork.act(city, road(x, z, 422.737, 522.957));
  buildNetwork.act(city, road(x, z, 423.614, 554.945));
}

/** A wind turbine, a water tower and a treatment plant beside a pipe that runs along the given road. */
export function supply(city: World, x: number, z: number, toX: number): void {
  buildNetwork.act(city, road(x, z, toX, z, "Water Pipe"));
  place(city, "Wind Turbine", x - 20, z + 20);
  place(city, "Wind Turbine", x - 20, z + 50);
  place(city, "Water Tower", x - 20, z - 20);
  place(city, "Inland Water Treatment Plant 01", x - 20, z - 60);
}

/** Three blocks of homes, shops and workshops on one street, supplied and connected to the outside. */
export function smallTown(city: World): void {
  layLattice(city, 160, 0, 3, 1);
  buildNetwork.act(city, road(400, 80, 400, 300));
  connectToHighway(city, 400, 300);
  supply(city, 160, 40, 400);
  zone(city, "ResidentialLow", 200, 40, 60);
  zone(city, "ResidentialLow", 280, 40, 30);
  zone(city, "CommercialLow", 360, 20, 30);
  zone(city, "Industrial", 360, 60, 30);
}

/** The town of src/city/FIRST_TOWN.md, with limited money. */
export function firstTown(seed = 1): World {
  const city = newCity("highway", seed);
  city.unlimitedMoney = false;
  buildNetwork.act(city, road(320, 300, 400, 300));
  connectToHighway(city, 400, 300);
  place(city, "Wind Turbine", 300, 300);
  buildNetwork.act(city, road(320, 310, 400, 310, "Water Pipe"));
  place(city, "Water Tower", 300, 320);
  place(city, "Inland Water Treatment Plant 01", 430, 360, 90);
  zone(city, "ResidentialLow", 340, 300, 40);
  return city;
}

/** Name, x, z and radius of the zones of the public starter script. */
export const STARTER_ZONES = [
  ["ResidentialLow", 200, -120, 48],
  ["ResidentialLow", 200, 120, 48],
  ["ResidentialLow", 320, 40, 48],
  ["CommercialLow", 400, -80, 42],
  ["Office", 440, 80, 42],
  ["Industrial", 480, 0, 36],
] as const;

/** The town of the public starter script with limited money, plus the plants, pipes and power lines that the script lacks. */
export function starterTown(seed = 7): World {
  const city = newCity("highway", seed);
  city.unlimitedMoney = false;
  layLattice(city, 160, -160, 4, 4);
  for (const [name, x, z, radius] of STARTER_ZONES) zone(city, name, x, z, radius);
  buildNetwork.act(city, road(400, 160, 400, 300));
  connectToHighway(city, 400, 300);
  supply(city, 160, -80, 480);
  for (const z of [0, 80]) buildNetwork.act(city, road(160, z - 80, 160, z, "Water Pipe"));
  for (const z of [0, 80]) buildNetwork.act(city, road(160, z, 480, z, "Water Pipe"));
  buildNetwork.act(city, road(140, -60, 140, 120, "Power Line"));
  for (const z of [-120, 40, 120]) buildNetwork.act(city, road(140, z, 480, z, "Power Line"));
  return city;
}

export function bulldozeAll(city: World, prefab: string): void {
  for (const { id } of city.buildings.all().filter((building) => building.prefab.name === prefab)) {
    bulldoze.act(city, { dryRun: false, entityType: "building", id, keepNodes: false });
  }
}

/** Buildings that a town of a thousand citizens needs. */
export const TOWN_SERVICES = [
  ["Wind Turbine", -120, 20],
  ["Wind Turbine", -120, 60],
  ["Wind Turbine", -120, 100],
  ["Water Tower", -110, 130],
  ["Inland Water Treatment Plant 01", -120, 200],
  ["Landfill Site", -260, 300],
  ["Cemetery", -260, 190],
  ["Medical Clinic", 40, -30],
  ["Fire House", 90, -30],
  ["Police Station", 140, -30],
  ["Elementary School", 200, -30],
  ["High School", 260, -30],
  ["University", 340, -60],
  ["Regular Park", 420, 100],
  ["Regular Park", 420, 180],
  ["Regular Park", -10, -30],
] as const;

/** Six by three blocks of homes, shops, workshops and offices with every basic service, joined to the highway. */
export function servedTown(seed = 7): World {
  const city = newCity("highway", seed);
  layLattice(city, -80, 0, 6, 3);
  buildNetwork.act(city, road(-80, 240, -320, 240));
  buildNetwork.act(city, road(400, 240, 400, 300));
  connectToHighway(city, 400, 300);
  for (const z of [40, 120, 200]) buildNetwork.act(city, road(-100, z, 400, z, "Water Pipe"));
  for (const z of [40, 120]) buildNetwork.act(city, road(-100, z, -100, z + 80, "Water Pipe"));
  buildNetwork.act(city, road(-100, 200, -200, 200, "Water Pipe"));
  buildNetwork.act(city, road(-200, 200, -200, 240, "Water Pipe"));
  buildNetwork.act(city, road(-120, 150, -200, 240, "Power Line"));
  for (const [prefab, x, z] of TOWN_SERVICES) place(city, prefab, x, z);
  for (const x of [-40, 40, 120, 200, 280, 360]) {
    for (const z of [40, 120, 200]) zone(city, "ResidentialLow", x, z, 44);
  }
  for (const z of [40, 120, 200]) zone(city, "ResidentialHigh", 120, z, 44);
  for (const z of [40, 200]) zone(city, "CommercialLow", 200, z, 30);
  zone(city, "CommercialLow", 40, 120, 30);
  for (const z of [40, 120]) zone(city, "Industrial", 360, z, 44);
  zone(city, "Office", 280, 40, 40);
  return city;
}

const CITY_SERVICES = [
  "Elementary School",
  "Medical Clinic",
  "High School",
  "Fire House",
  "Police Station",
  "Regular Park",
  "University",
];
/**
 * Zones of consecutive blocks in the large city. After these, blocks of Industrial and Office follow; then the
 * sequence repeats.
 */
const CITY_ZONES = "ResidentialHigh ResidentialHigh ResidentialLow ResidentialHigh CommercialHigh ".repeat(2);

/**
 * A connected city with all services, over 5,000 segments and 12,000 growables, built with the public commands.
 * Growables and citizens are added at once, because simulating years of growth would take hours.
 */
export function largeCity(citizens = 100_000): World {
  const city = newCity();
  const world = city;
  layLattice(city, -3440, -2000, 50, 30);
  layLattice(city, -3440, 800, 50, 20);
  connectToHighway(city, 400, 400);
  connectToHighway(city, 400, 800);
  for (let z = -2000; z <= 2400; z += 80) {
    for (let x = -3440; x < 560; x += 800) buildNetwork.act(city, road(x, z, x + 800, z, "Water Pipe"));
    if (z < 2400) buildNetwork.act(city, road(-3440, z, -3440, z + 80, "Water Pipe"));
    place(city, "Water Tower", -3470, z);
    place(city, "Inland Water Treatment Plant 01", -3480, z + 40);
  }
  place(city, "Fusion Power Plant", -3300, -2072);
  for (let x = -3400; x < 300; x += 320) {
    place(city, "Combustion Plant", x, 440);
    place(city, "Crematory", x + 160, 440);
  }
  serveBlocks(city);
  const zones = CITY_ZONES.trim().split(" ").concat("Industrial", "Office");
  for (const block of world.blocks.all()) {
    const index = Math.floor(block.position.x / 80) + 5 * Math.floor(block.position.z / 80);
    const zone = ZONES.indexOf(zones[((index % zones.length) + zones.length) % zones.length] as Zone);
    paintCells(city, block, Array(32).fill(zone));
  }
  growByForce(city);
  settleByForce(city, citizens);
  return city;
}

/** Fills all zoned land with growables at once. */
export function growByForce(city: World): void {
  const world = city;
  for (let round = 0; round < 40; round++) {
    for (const block of world.blocks.all()) {
      Object.assign(world.demand, { residential: 100, commercial: 100, workplace: 100 });
      growOnBlock(world, block);
    }
  }
  advance(city, 2 * 4096);
}

/** Moves households in at once, evenly over the homes, up to a number of citizens. */
export function settleByForce(city: World, citizens: number): void {
  const world = city;
  const homes = world.buildings.all().filter((each) => each.homes > 0);
  for (let round = 0; city.citizens.size < citizens && round < 100; round++) {
    for (const home of homes) {
      if (home.householdIds.length < home.homes && city.citizens.size < citizens) moveIn(world, home);
    }
  }
}

/** Empty homes for about a thousand people, with utilities and a road to the highway, but without services. */
export function homesOnly(city: World): void {
  layLattice(city, 160, 0, 3, 3);
  for (const z of [40, 120, 200]) buildNetwork.act(city, road(160, z, 400, z, "Water Pipe"));
  for (const z of [40, 120]) buildNetwork.act(city, road(160, z, 160, z + 80, "Water Pipe"));
  supply(city, 140, 40, 160);
  for (const z of [40, 120, 200]) {
    zone(city, "ResidentialHigh", 280, z, 140);
    place(city, "Wind Turbine", 100, z + 40);
  }
  growByForce(city);
  buildNetwork.act(city, road(400, 240, 400, 300));
  connectToHighway(city, 400, 300);
}

/** Places a service building in every third block of every third row. */
function serveBlocks(city: World): void {
  let turn = 0;
  for (let z = -1960; z < 2400; z += 240) {
    if (z > 400 && z < 800) continue;
    for (let x = -3400; x < 560; x += 240) {
      place(city, CITY_SERVICES[turn++ % CITY_SERVICES.length] as string, x, z);
    }
  }
}

/** Loads a city from a save without changing the file. */
export async function loadWorld(path: string): Promise<World> {
  return (await readSave(path)).world;
}

/** Builds the city of a snapshot. @throws Error if a value is wrong or an invariant is broken */
export function restoreSnapshot(snapshot: Parameters<typeof restoreInPieces>[0]): World {
  return inOneGo(restoreInPieces(snapshot));
}

/** Describes every broken invariant; empty for a valid city. */
export function findFaults(world: World): string[] {
  return [...faultsOf(world)].filter((fault) => fault !== undefined);
}

/** The whole state of a city as one string, for comparison. */
export function fingerprint(city: World): string {
  return [...writeCapture(inOneGo(capturePieces(city)))].join("");
}

/** Number of buildings with a problem. */
export function countProblem(city: World, name: ProblemName): number {
  return city.buildings.all().filter(({ problems }) => problems.names.includes(name)).length;
}

export function countFlag(city: World, flag: BuildingFlag): number {
  return city.buildings.all().filter(({ flags }) => (flags & FLAG[flag]) !== 0).length;
}
