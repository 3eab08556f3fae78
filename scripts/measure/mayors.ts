/**
 * Plays the city with scripted mayors:
 * node --import tsx scripts/measure/mayors.ts [NAME|all] [YEARS] [SEEDS] [WEEKS BETWEEN LINES]
 *
 * Prints a line every half-year with figures that a player would watch. Percentages cover the latest year.
 */
import { lastYear, MAYORS, play } from "../../test/city/simulation/mayors.js";

const [wanted = "all", years = "10", seeds = "3", step = "26"] = process.argv.slice(2);

for (const [name, mayor] of Object.entries(MAYORS)) {
  if (wanted !== "all" && wanted !== name) continue;
  for (let seed = 1; seed <= Number(seeds); seed++) {
    const startMs = performance.now();
    console.log(`\n${name}, seed ${seed}`);
    let isFirst = true;
    play(mayor, seed, Number(years), (city, week) => {
      if (week % Number(step) !== 0) return;
      const figures = { year: week / 52, ...lastYear(city) };
      if (isFirst)
        console.log(
          Object.keys(figures)
            .map((head) => head.slice(0, 10).padStart(11))
            .join(""),
        );
      isFirst = false;
      const demand = Object.values(city.demand).join("/");
      const cells = Object.values(figures).map((figure) => figure.toFixed(figure < 100 ? 1 : 0).padStart(11));
      console.log(`${cells.join("")}  ${demand}`);
    });
    console.log(`${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  }
}
