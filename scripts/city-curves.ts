/**
 * What becomes of two towns that nobody touches: node --import tsx scripts/city-curves.ts [starter|large] [YEARS]
 *
 * `starter` is the town of the public starter script, with plants, pipes and power lines since it builds none; `large` the city of
 * 100,000 that city-load.ts measures, which begins filled by force. A line a quarter.
 */
import type { City } from "../src/city/game.js";
import type { SimulatedCity } from "../src/city/simulation/simulated-city.js";
import { FRAMES_PER_WEEK } from "../src/city/simulation/state/calendar.js";
import {
  advance,
  connectToHighway,
  largeCity,
  layLattice,
  newCity,
  road,
  supply,
  zone,
} from "../test/city/simulation/towns.js";

const QUARTERS_PER_YEAR = 4;
const WEEKS_PER_QUARTER = 13;

const STARTER_ZONES = [
  ["ResidentialLow", 200, -120, 48],
  ["ResidentialLow", 200, 120, 48],
  ["ResidentialLow", 320, 40, 48],
  ["CommercialLow", 400, -80, 42],
  ["Office", 440, 80, 42],
  ["Industrial", 480, 0, 36],
] as const;

function starterTown(): SimulatedCity {
  const city = newCity();
  city.world.unlimitedMoney = false;
  layLattice(city, 160, -160, 4, 4);
  for (const [name, x, z, radius] of STARTER_ZONES) zone(city, name, x, z, radius);
  city.apply(road(400, 160, 400, 300));
  connectToHighway(city, 400, 300);
  supply(city, 160, -80, 480);
  for (const z of [0, 80]) city.apply(road(160, z - 80, 160, z, "Water Pipe"));
  for (const z of [0, 80]) city.apply(road(160, z, 480, z, "Water Pipe"));
  city.apply(road(140, -60, 140, 120, "Power Line"));
  for (const z of [-120, 40, 120]) city.apply(road(140, z, 480, z, "Power Line"));
  return city;
}

function line(city: City, quarter: number): string {
  const { citizens, balance, income, expenses, growables, abandoned, happiness } = city
    .statistics()
    .at(-1) as ReturnType<City["statistics"]>[number];
  const { residential, commercial, workplace } = city.demand;
  const figures = [
    quarter / QUARTERS_PER_YEAR,
    citizens,
    growables,
    abandoned,
    happiness.toFixed(0),
    balance.toFixed(0),
    (income - expenses).toFixed(0),
    `${residential}/${commercial}/${workplace}`,
  ];
  return figures.map((figure) => String(figure).padStart(11)).join("");
}

const [town = "starter", years = "5"] = process.argv.slice(2);
const city = town === "large" ? largeCity() : starterTown();
const heads = ["year", "citizens", "growables", "abandoned", "happiness", "balance", "net a week", "demand"];
console.log(heads.map((head) => head.padStart(11)).join(""));
for (let quarter = 1; quarter <= Number(years) * QUARTERS_PER_YEAR; quarter++) {
  advance(city, WEEKS_PER_QUARTER * FRAMES_PER_WEEK);
  console.log(line(city, quarter));
}
