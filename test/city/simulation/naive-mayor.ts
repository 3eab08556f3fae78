/**
 * A naive mayor: builds a service when the town has the size for it, and homes, shops and works by demand. Never looks
 * at the budget.
 */
import type { GroundPoint } from "../../../src/city/geometry.js";
import { shownDemand } from "../../../src/city/simulation/life/demand.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { ORIGIN, type Town, WORKS } from "./mayor-town.js";
import { foundTown, keepUtilities, type Mayor, townOf, unlessUnaffordable } from "./mayors.js";
import { advance } from "./towns.js";

/** Frames of a second at speed 1. */
const FRAMES_PER_SECOND = 60;
/** Money that the mayor keeps: none. A town refuses to spend its last 2,000 unless it may owe as much. */
const RESERVE = -2_000;

/** Zones are dense from this number of citizens on. */
const TOWN_CITIZENS = 1_000;
const HIGH_DEMAND = 30;

/** Number of citizens from which the town gets its first building of a service, and one more for each as many as `every`. */
const SIZES: readonly (readonly [prefab: string, from: number, every: number])[] = [
  ["Elementary School", 60, 2_000],
  ["Medical Clinic", 90, 2_000],
  ["Landfill Site", 120, 5_000],
  ["Regular Park", 150, 600],
  ["Fire House", 180, 2_000],
  ["Police Station", 210, 2_000],
  ["Regular Playground", 240, 1_200],
  ["Cemetery", 270, 4_000],
  ["Regular Plaza", 300, 1_200],
  ["High School", 330, 5_000],
  ["Basketball Court", 350, 1_200],
  ["University", 4_000, 20_000],
];

/** @param seconds time at speed 1 that passes before the mayor pauses the new city */
export function naiveMayor(seconds: number): Mayor {
  return {
    found: (seed) => {
      const city = foundTown(seed, RESERVE);
      advance(city, seconds * FRAMES_PER_SECOND);
      return city;
    },
    govern: (city) =>
      unlessUnaffordable(() => {
        const town = townOf(city);
        keepUtilities(town);
        for (const [prefab, from, every] of SIZES) serve(town, prefab, numberFor(city, from, every));
        zoneByDemand(town);
      }),
  };
}

/** Zones one block at a time of homes, shops and works. */
function zoneByDemand(town: Town): void {
  const { residential, commercial, workplace } = shownDemand(town.city);
  const density = town.city.citizens.size < TOWN_CITIZENS ? "Low" : "High";
  const zones = [
    [residential, `Residential${density}`, ORIGIN],
    [commercial, `Commercial${density}`, ORIGIN],
    [workplace, "Industrial", WORKS],
  ] as const;
  for (const [demand, zone, near] of zones) {
    if (demand > HIGH_DEMAND && town.unfinished(zone) === 0) town.zone(zone, near);
  }
}

function numberFor({ citizens }: World, from: number, every: number): number {
  return citizens.size < from ? 0 : 1 + Math.floor((citizens.size - from) / every);
}

/** Builds until the town has this many of a service, switched off ones included. */
function serve(town: Town, prefab: string, wanted: number): void {
  const own = town.city.buildings.all().filter((building) => building.prefab.name === prefab).length;
  for (let i = own; i < wanted; i++) if (!town.build(prefab, middleOfHomes(town.city))) return;
}

function middleOfHomes(city: World): GroundPoint {
  const homes = city.buildings.all().filter(({ homes }) => homes > 0);
  const mean = (axis: "x" | "z") =>
    homes.reduce((sum, { position }) => sum + position[axis], 0) / homes.length;
  return homes.length === 0 ? ORIGIN : { x: mean("x"), z: mean("z") };
}
