/** Citizens' messages, budget and weekly statistics. */
import { type BudgetAnswer, type Chirp, type Place, read, type StatisticsRow } from "./api.js";
import { showCharts } from "./charts.js";
import { showDebt } from "./debt.js";
import { byId, element, placeLink } from "./panel.js";
import { formatWholeNumber, inWords } from "./words.js";

const SHOWN_CHIRPS = 20;
const SHOWN_WEEKS = 104;
let newestWeek = "?";
let newestChirp = Number.NaN;

/** Finds the place that a text names. */
export type PlaceOf = (text: string) => Place | undefined;

/** Forgets what is shown: another city is loaded. */
export function forgetTown(): void {
  newestWeek = "?";
  newestChirp = Number.NaN;
}

/** Reads and shows messages and statistics. @param budget null if the bridge has none; budget and statistics are then hidden */
export async function showTown(
  budget: BudgetAnswer | null,
  placeOf: PlaceOf,
  visit: (place: Place) => void,
  runCommand: (work: () => Promise<void>) => void,
): Promise<void> {
  const { chirps } = await read<{ chirps: Chirp[] }>(`/state/chirps?limit=${SHOWN_CHIRPS}`);
  const newest = chirps[0]?.index ?? -1;
  if (newest !== newestChirp) {
    newestChirp = newest;
    byId("chirps").replaceChildren(...chirps.map((chirp) => chirpItem(chirp, placeOf, visit)));
  }
  byId("money").hidden = budget === null;
  byId("course").hidden = budget === null;
  if (!budget) return;
  await showDebt(budget, runCommand);
  const week = await read<{ samples: StatisticsRow[] }>("/state/statistics?limit=1");
  const [last] = week.samples;
  const ended = last?.gameTime ?? "";
  if (ended === newestWeek) return;
  newestWeek = ended;
  const [income, expenses] = [budgetBody("Income", budget.income), budgetBody("Expenses", budget.expenses)];
  byId("budget").replaceChildren(income, expenses);
  const { samples } = await read<{ samples: StatisticsRow[] }>(`/state/statistics?limit=${SHOWN_WEEKS}`);
  showCharts(byId("charts"), samples.toReversed());
  byId("course-weeks").textContent = samples.length === 1 ? "of one week" : `of ${samples.length} weeks`;
}

function chirpItem(
  { senderName, text }: Chirp,
  placeOf: PlaceOf,
  visit: (place: Place) => void,
): HTMLElement {
  const sender = element("b", { textContent: senderName });
  return element("li", {}, sender, " ", placeLink(text, placeOf(text), visit));
}

/** Table of last week's amounts and their sum. Leaves out lines with amount zero. */
function budgetBody(title: string, lines: BudgetAnswer["income"]): HTMLElement {
  const row = (cell: "th" | "td", name: string, amount: number) =>
    element(
      "tr",
      {},
      element(cell, { textContent: inWords(name) }),
      element(cell, { textContent: formatWholeNumber(amount) }),
    );
  const rows = lines
    .filter(({ lastWeek }) => lastWeek !== 0)
    .map(({ name, lastWeek }) => row("td", name, lastWeek));
  const sum = lines.reduce((all, { lastWeek }) => all + lastWeek, 0);
  return element("tbody", {}, row("th", title, sum), ...rows);
}
