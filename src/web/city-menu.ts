/** Dialogs of the top bar: new city, save and load; taxes and loans. */
import { type BudgetAnswer, errorInWords, read, readOrNull, sendCommand } from "./api.js";
import { askFirst, button, byId, element, replaceKeepingFocus } from "./panel.js";
import { formatWholeNumber, inWords } from "./words.js";

interface SaveRow {
  readonly name: string;
  readonly lastWriteTimeUtc: string;
}

/** @param onChange called when the city, its money or its saves have changed */
export function offerCityMenu(isEmbedded: boolean, onChange: () => void): void {
  const dialog = byId<HTMLDialogElement>("city-dialog");
  const say = sayIn("city-dialog-status");
  const seed = byId<HTMLInputElement>("seed");
  byId("new-city").hidden = !isEmbedded;
  byId("open-city").addEventListener("click", () => {
    seed.value = String(Math.floor(Math.random() * 10_000));
    dialog.showModal();
    void say(() => listSaves(isEmbedded, replaceCity));
  });
  const replaceCity = (name: string, body: object) =>
    say(async () => {
      byId("city-dialog-status").textContent = "One moment...";
      await sendCommand(name, { paused: true, ...body });
      forgetSaves();
      dialog.close();
      onChange();
    });
  byId("new-city").addEventListener("submit", (event) => {
    event.preventDefault();
    void replaceCity("new-city", { seed: Number(seed.value) });
  });
  byId("save").addEventListener("submit", (event) => {
    event.preventDefault();
    const value = byId<HTMLInputElement>("save-name").value.trim();
    const save = () =>
      say(async () => {
        const { saveName: name = value } = await sendCommand("save", { name: value });
        saved.add(value);
        byId("city-dialog-status").textContent = `"${name}" is being saved...`;
        await untilListed(name);
        byId("city-dialog-status").textContent = `"${name}" is saved.`;
        await listSaves(isEmbedded, replaceCity);
      });
    void say(async () => {
      const { saves } = await read<{ saves: SaveRow[] }>("/state/saves");
      const isOther = saves.some(({ name }) => name === value) && !saved.has(value);
      if (isOther) askFirst(`Replace the saved city "${value}"?`, () => void save());
      else await save();
    });
  });
}

/** Names under which this page has saved the city that it shows. */
const saved = new Set<string>();

/** The city is another one: its first save under a name that is taken asks first. */
export function forgetSaves(): void {
  saved.clear();
}

const SAVE_POLLS = 40;
const SAVE_POLL_MS = 250;

/** A save is written in the background. @throws Error if it is not listed in time */
async function untilListed(name: string): Promise<void> {
  const since = Date.now() - 5000;
  for (let poll = 0; poll < SAVE_POLLS; poll++) {
    const { saves } = await read<{ saves: SaveRow[] }>("/state/saves");
    const found = saves.find((save) => save.name === name);
    if (found && Date.parse(`${found.lastWriteTimeUtc}Z`) >= since) return;
    await new Promise((resolve) => setTimeout(resolve, SAVE_POLL_MS));
  }
  throw new Error(`"${name}" is not listed as saved yet.`);
}

async function listSaves(isEmbedded: boolean, replaceCity: Run): Promise<void> {
  const { saves } = await read<{ saves: SaveRow[] }>("/state/saves");
  const items = saves.map(({ name, lastWriteTimeUtc }) => {
    const time = new Date(`${lastWriteTimeUtc}Z`).toLocaleString();
    const load = button("Load", () => void replaceCity("load-city", { name }));
    const isAutomatic = name.startsWith("AutoSave ");
    const textContent = isAutomatic ? "Saved automatically" : name;
    load.ariaLabel = isAutomatic ? `Load what was saved automatically at ${time}` : `Load ${name}`;
    // Names in other scripts keep the order of the time.
    const words = element("span", {}, element("b", { textContent, dir: "auto" }), ` ${time}`);
    return element("li", {}, words, ...(isEmbedded ? [load] : []));
  });
  byId("saves").replaceChildren(...(items.length > 0 ? items : [element("li", { textContent: "None yet" })]));
}

interface TaxRow {
  readonly service: string;
  readonly subService: string;
  readonly rate: number;
}

export function offerTreasury(onChange: () => void): void {
  const say = sayIn("treasury-status");
  const run = (name: string, body: object) =>
    say(async () => {
      try {
        await sendCommand(name, body);
        onChange();
      } finally {
        // Also after a refusal: the fields show what the city has.
        await list();
      }
    });
  const list = async () => {
    const { aggregateTaxRates } = await read<{ aggregateTaxRates: TaxRow[] }>("/state/economy");
    replaceKeepingFocus(
      byId("taxes"),
      aggregateTaxRates.map((row) => taxInput(row, run)),
    );
    const budget = await readOrNull<BudgetAnswer>("/state/budget?history=false");
    const offers = budget?.loanOffers ?? [];
    replaceKeepingFocus(
      byId("loans"),
      offers.map((offer) => loanItem(offer, budget?.loans, run)),
    );
  };
  byId("open-treasury").addEventListener("click", () => {
    byId<HTMLDialogElement>("treasury").showModal();
    void say(list);
  });
}

/** Taxes and loans of a city that is no longer loaded would mislead. */
export function closeTreasury(): void {
  byId<HTMLDialogElement>("treasury").close();
}

type Run = (name: string, body: object) => Promise<void>;

function taxInput({ service, subService, rate }: TaxRow, run: Run): HTMLElement {
  const input = element("input", {
    type: "number",
    min: "0",
    max: "29",
    required: true,
    value: String(rate),
  });
  input.addEventListener("change", () => {
    if (input.reportValidity()) void run("set-tax-rate", { service, subService, rate: Number(input.value) });
  });
  return element("label", {}, inWords(subService), input, "%");
}

function loanItem(
  { lender, amount, weeks, weeklyPayment }: NonNullable<BudgetAnswer["loanOffers"]>[number],
  loans: BudgetAnswer["loans"] = [],
  run: Run,
): HTMLElement {
  const running = loans.find((loan) => loan.lender === lender);
  const cost = formatWholeNumber(weeklyPayment);
  const terms = running
    ? `${cost} a week, ${running.weeksLeft} weeks left`
    : `${formatWholeNumber(amount)}, paid back with ${cost} a week for ${weeks} weeks`;
  const label = running ? `Pay back ${formatWholeNumber(weeklyPayment * running.weeksLeft)}` : "Borrow";
  const act = button(label, () => {
    // The focus stays on a button that is not disabled.
    if (act.ariaDisabled === "true") return;
    act.ariaDisabled = "true";
    void run("take-loan", { lender, repay: running !== undefined }).finally(() => {
      act.ariaDisabled = null;
    });
  });
  act.ariaLabel = running ? `${label} to ${lender}` : `Borrow from ${lender}`;
  const words = element("span", {}, element("b", { textContent: lender }), ` ${terms}`);
  return element("li", {}, words, act);
}

/** Returns a function that runs `work` and shows its error in a status line. */
function sayIn(id: string): (work: () => Promise<void>) => Promise<void> {
  return async (work) => {
    byId(id).textContent = "";
    try {
      await work();
    } catch (error) {
      byId(id).textContent = errorInWords(error);
    }
  };
}
