/** What the town says and what it earns: citizens' messages, money, and its course week by week. */
import { type BudgetAnswer, type Chirp, read, readIfOffered, type Sample } from "./api.js";
import { inFigures, showCharts } from "./charts.js";
import { byId, element } from "./panel.js";

const SHOWN_CHIRPS = 20;
const SHOWN_WEEKS = 104;
let newestWeek = "";

/** Reads what is new. Where the bridge tells nothing of money, its sections stay away. */
export async function showTown(): Promise<void> {
  const { chirps } = await read<{ chirps: Chirp[] }>(`/state/chirps?limit=${SHOWN_CHIRPS}`);
  byId("chirps").replaceChildren(...chirps.map(chirpItem));
  const budget = await readIfOffered<BudgetAnswer>("/state/budget?history=false");
  byId("money").hidden = budget === null;
  byId("course").hidden = budget === null;
  if (!budget) return;
  byId("balance").textContent = inFigures(budget.balance);
  const week = await read<{ samples: Sample[] }>("/state/statistics?limit=1");
  const [newest] = week.samples;
  if (newest && newest.gameTime === newestWeek) return;
  newestWeek = newest?.gameTime ?? "";
  byId("budget").replaceChildren(
    budgetBody("Income", budget.income),
    budgetBody("Expenses", budget.expenses),
  );
  const { samples } = await read<{ samples: Sample[] }>(`/state/statistics?limit=${SHOWN_WEEKS}`);
  showCharts(byId("charts"), samples.toReversed());
  byId("course-weeks").textContent = `of ${samples.length} weeks`;
}

function chirpItem({ senderName, text }: Chirp): HTMLElement {
  return element("li", {}, element("b", { textContent: senderName }), ` ${text}`);
}

/** The sums of the last whole week; lines with no money in them are left out. */
function budgetBody(title: string, lines: BudgetAnswer["income"]): HTMLElement {
  const rows = lines
    .filter(({ lastWeek }) => lastWeek !== 0)
    .map(({ name, lastWeek }) =>
      element(
        "tr",
        {},
        element("td", { textContent: name }),
        element("td", { textContent: inFigures(lastWeek) }),
      ),
    );
  const sum = lines.reduce((all, { lastWeek }) => all + lastWeek, 0);
  const head = element(
    "tr",
    {},
    element("th", { textContent: title }),
    element("th", { textContent: inFigures(sum) }),
  );
  return element("tbody", {}, head, ...rows);
}
