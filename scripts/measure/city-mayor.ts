/**
 * Plays a naive mayor for two years on several seeds and starts, which differ by some seconds before the pause, and
 * lists balance, citizens and happiness:
 * node --import tsx scripts/measure/city-mayor.ts [SEEDS, such as 1,2,3] [SECONDS, such as 0,7]
 */
import { totalsOf } from "../../src/city/simulation/state/economy.js";
import { play } from "../../test/city/simulation/mayors.js";
import { naiveMayor } from "../../test/city/simulation/naive-mayor.js";

const YEARS = 2;
const numbers = (text: string) => text.split(",").map(Number);
const [seeds = "1,2,3,4,5", seconds = "0,7"] = process.argv.slice(2);

console.log(
  "seed seconds | lowest balance, week | week 52: balance citizens happiness | week 104 | net at 1,000 | off",
);
for (const seed of numbers(seeds)) {
  for (const start of numbers(seconds)) {
    const net: number[] = [];
    const city = play(naiveMayor(start), seed, YEARS, ({ ledger, citizens }) => {
      const { income, expenses } = totalsOf({
        ...ledger.history.at(-1)?.amounts,
        Construction: 0,
        Milestones: 0,
        Grants: 0,
        Loans: 0,
      });
      if (citizens.size >= 1_000 && net.length === 0) net.push(Math.round(income), Math.round(expenses));
    });
    const { samples } = city.statistics;
    const lowest = samples.reduce((low, sample) => (sample.balance < low.balance ? sample : low));
    const at = (week: number) => {
      const { balance, citizens, happiness } = samples[week - 1] as (typeof samples)[number];
      return `${balance.toFixed(0)} ${citizens} ${happiness.toFixed(0)}`;
    };
    const off = city.buildings.all().filter(({ switchedOff }) => switchedOff).length;
    const columns = [
      `${seed} ${start}`,
      `${lowest.balance.toFixed(0)}, ${samples.indexOf(lowest) + 1}`,
      at(52),
      at(104),
      net.join(" - "),
      off,
    ];
    console.log(columns.join(" | "));
  }
}
