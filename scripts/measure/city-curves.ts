/**
 * Prints how a town develops without commands, one line per quarter:
 * node --import tsx scripts/measure/city-curves.ts [starter|large] [YEARS]
 *
 * `starter` is the town that the public starter script builds, with plants, pipes and power lines added; `large`
 * is the city of 100,000 citizens of city-load.ts.
 */
import type { SimulatedCity } from "../../src/city/simulation/simulated-city.js";
import { FRAMES_PER_WEEK } from "../../src/city/simulation/state/calendar.js";
import { advance, largeCity, starterTown } from "../../test/city/simulation/towns.js";

const QUARTERS_PER_YEAR = 4;
const WEEKS_PER_QUARTER = 13;

function line(city: SimulatedCity, quarter: number): string {
  const { citizens, balance, income, expenses, growables, abandoned, happiness } = city
    .statistics()
    .at(-1) as ReturnType<SimulatedCity["statistics"]>[number];
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
const heads = ["year", "citizens", "growables", "abandoned", "happiness", "balance", "net/week", "demand"];
console.log(heads.map((head) => head.padStart(11)).join(""));
for (let quarter = 1; quarter <= Number(years) * QUARTERS_PER_YEAR; quarter++) {
  advance(city, WEEKS_PER_QUARTER * FRAMES_PER_WEEK);
  console.log(line(city, quarter));
}
