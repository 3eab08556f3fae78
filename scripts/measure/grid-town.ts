/** Builds the town of the city measurements: a street grid with every service. */
import { buildNetwork } from "../../src/city/commands/build-network.js";
import { moveIn } from "../../src/city/simulation/fabric/citizens.js";
import type { World } from "../../src/city/simulation/state/world.js";
import { ZONES, type Zone } from "../../src/city/terms.js";
import { connectToHighway, layLattice, place, road, zone } from "../../test/city/simulation/towns.js";

const SERVICES = [
  "Medical Clinic",
  "Fire House",
  "Police Station",
  "Elementary School",
  "High School",
  "University",
  "Crematory",
  "Combustion Plant",
];
/** Building or zone of each block. Of every eight blocks the first has a service building and the others are zoned. */
const BLOCKS = Array.from({ length: 112 }, (_, i) => {
  if (i % 8 === 0) return SERVICES[(i / 8) % SERVICES.length] as string;
  return ["ResidentialLow", "ResidentialHigh", "CommercialLow", "ResidentialHigh", "Industrial"][
    i % 5
  ] as string;
});

/** Builds 14 x 8 blocks with utilities and a connection to the highway. */
export function buildGridTown(city: World): void {
  layLattice(city, -720, -340, 14, 8);
  connectToHighway(city, 400, 300);
  for (let z = -340; z <= 300; z += 80) {
    buildNetwork.act(city, road(-740, z, 400, z, "Water Pipe"));
    if (z < 300) buildNetwork.act(city, road(-740, z, -740, z + 80, "Water Pipe"));
    place(city, "Water Tower", -750, z);
    place(city, "Advanced Wind Turbine", -770, z);
    place(city, "Inland Water Treatment Plant 01", -760, z + 40);
  }
  BLOCKS.forEach((name, i) => {
    const [x, z] = [-680 + 80 * (i % 14), -300 + 80 * Math.floor(i / 14)];
    if (ZONES.includes(name as Zone)) zone(city, name, x, z, 44);
    else place(city, name, x, z);
  });
}

/** Moves residents in directly, regardless of demand, up to `citizens`. */
export function fillHomes(city: World, citizens: number): void {
  for (const home of city.buildings.all()) {
    while (home.householdIds.length < home.homes && city.citizens.size < citizens) moveIn(city, home);
  }
}
