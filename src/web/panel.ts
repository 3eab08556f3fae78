/** Panels beside the map: clock, demand and speed; layers; messages. */
import { type BudgetAnswer, type LayerData, type Place, type Summary, sendCommand } from "./api.js";
import {
  colors,
  DEMAND_COLORS,
  FIRST_ZONE_VALUE,
  GROWABLE_COLORS,
  RUIN_COLOR,
  SERVICE_STYLES,
  ZONE_COLORS,
  ZONES,
} from "./colors.js";
import { formatWholeNumber, inWords, SCALES, SERVICE_SCALE } from "./words.js";

/** @throws Error if the page has no such element */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element #${id}`);
  return element as T;
}

/** Creates an element with children or text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
}

/** Replaces what is inside an element. The focus stays on the button or field with the same place. */
export function replaceKeepingFocus(parent: HTMLElement, inside: readonly Node[]): void {
  const fields = () => [...parent.querySelectorAll<HTMLElement>("button, input")];
  const focused = fields().indexOf(document.activeElement as HTMLElement);
  parent.replaceChildren(...inside);
  fields()[focused]?.focus();
}

/** Asks the user, and calls `act` if the user confirms. */
export function askFirst(question: string, act: () => void): void {
  const dialog = byId<HTMLDialogElement>("confirm");
  byId("confirm-question").textContent = question;
  dialog.returnValue = "";
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && act(), { once: true });
  dialog.showModal();
}

const SPEEDS = [1, 2, 3] as const;
const DEMANDS = [
  { key: "residential", label: "Homes" },
  { key: "commercial", label: "Shops" },
  { key: "workplace", label: "Work" },
] as const;

/** Clock, citizens, demand bars and speed buttons. */
export class Controls {
  readonly #speedButtons: readonly HTMLElement[];
  readonly #bars: readonly HTMLElement[];
  #selectedSpeed = 1;
  /** Speed commands without a response. Until then the buttons show what was clicked last. */
  #unanswered = 0;
  #lastSent: Promise<unknown> = Promise.resolve();

  /** @param runCommand runs `work`, and shows the error if `work` fails */
  constructor(runCommand: (work: () => Promise<void>) => void) {
    const setSpeed = (paused: boolean, speed: number) => {
      this.#showSpeed(paused, speed);
      this.#unanswered++;
      // Two requests at once could arrive in the other order.
      const sent = this.#lastSent.then(() => sendCommand("set-simulation-speed", { paused, speed }));
      this.#lastSent = sent.catch(() => {}).finally(() => this.#unanswered--);
      runCommand(async () => {
        await sent;
      });
    };
    this.#speedButtons = [
      button("Pause", () => setSpeed(true, this.#selectedSpeed)),
      ...SPEEDS.map((speed) => {
        const made = button("▶".repeat(speed), () => setSpeed(false, speed));
        return Object.assign(made, { ariaLabel: `Speed ${speed}`, title: `Speed ${speed}` });
      }),
    ];
    byId("speed").append(...this.#speedButtons);
    this.#bars = DEMANDS.map(({ key, label }) => demandBar(label, DEMAND_COLORS[key]));
    byId("demand").append(...this.#bars);
  }

  /** Shows the money of now. Without a budget, the button of the top bar only offers taxes. */
  showMoney(budget: BudgetAnswer | null): void {
    byId("money-name").textContent = budget ? "Money" : "Taxes";
    byId("balance").textContent = budget ? formatWholeNumber(budget.balance) : "";
    const { weeklySurplus } = budget ?? {};
    const weekly = weeklySurplus === undefined ? "" : formatWholeNumber(weeklySurplus);
    byId("surplus").textContent =
      weekly === "" ? "" : `${(weeklySurplus ?? 0) > 0 ? "+" : ""}${weekly} a week`;
    byId("balance").classList.toggle("failed", (budget?.balance ?? 0) < 0);
  }

  show({ gameTime, citizens, simulation, demand }: Summary): void {
    byId("clock").textContent = gameTime.replace("T", " ").slice(0, 16);
    byId("citizens").textContent = citizens.count.toLocaleString("en");
    if (this.#unanswered === 0) this.#showSpeed(simulation.paused, simulation.selectedSpeed);
    this.#bars.forEach((bar, i) => {
      const { key } = DEMANDS[i] as (typeof DEMANDS)[number];
      fillBar(bar, demand[key]);
    });
  }

  #showSpeed(paused: boolean, speed: number): void {
    this.#selectedSpeed = speed;
    this.#speedButtons.forEach((element, i) => {
      element.setAttribute("aria-pressed", String(i === (paused ? 0 : speed)));
    });
  }
}

export function button(label: string, onClick: () => void): HTMLButtonElement {
  const made = element("button", { type: "button", textContent: label });
  made.addEventListener("click", onClick);
  return made;
}

function demandBar(label: string, color: string): HTMLElement {
  const fill = element("div", { className: "fill" });
  fill.style.background = color;
  const bar = element("span", { className: "bar", role: "meter", ariaLabel: `Demand: ${label}` }, fill);
  Object.assign(bar, { ariaValueMin: "0", ariaValueMax: "100", ariaValueNow: "0" });
  const name = element("span", { className: "name", textContent: label });
  return element("div", { className: "demand" }, name, bar, element("output", {}));
}

function fillBar(row: HTMLElement, value: number): void {
  row.querySelector("[role=meter]")?.setAttribute("aria-valuenow", String(value));
  (row.querySelector(".fill") as HTMLElement).style.width = `${value}%`;
  (row.querySelector("output") as HTMLElement).textContent = String(value);
}

/** A colour of a legend. */
type Key = readonly [label: string, color: () => string, symbol?: string];

interface Layer {
  readonly label: string;
  /** Whether the layer is hidden until the user shows it. */
  readonly isHidden?: boolean;
  readonly keys: readonly Key[];
}

/** Layers of the map and their legend. */
const LAYERS = {
  land: {
    label: "Terrain and water",
    keys: [
      ["Water", () => `rgb(${colors().water.join(" ")})`],
      ["Meadow", () => colors().ground],
      ["Hills", () => `rgb(${colors().hill.join(" ")})`],
    ],
  },
  zones: {
    label: "Zones",
    keys: ZONES.map((zone, i) => [inWords(zone), () => ZONE_COLORS[i + FIRST_ZONE_VALUE] ?? ""] as const),
  },
  roads: {
    label: "Roads and paths",
    keys: [
      ["Small", () => colors().smallRoad],
      ["Medium", () => colors().mediumRoad],
      ["Large", () => colors().largeRoad],
      ["Highway", () => colors().highway],
      ["Path", () => colors().path],
      ["Track", () => colors().track],
    ],
  },
  buildings: {
    label: "Buildings",
    keys: [
      ["Homes", () => GROWABLE_COLORS.Residential as string],
      ["Shops", () => GROWABLE_COLORS.Commercial as string],
      ["Industry", () => GROWABLE_COLORS.Industrial as string],
      ["Offices", () => GROWABLE_COLORS.Office as string],
      ["Abandoned", () => RUIN_COLOR],
    ],
  },
  services: {
    label: "Services",
    keys: Object.entries(SERVICE_STYLES).map(
      ([service, { symbol, color }]) => [inWords(service), () => color, symbol] as const,
    ),
  },
  names: { label: "Street names", keys: [] },
  cars: { label: "Cars", keys: [] },
  night: { label: "Day and night", isHidden: true, keys: [] },
  water: { label: "Water pipes", isHidden: true, keys: [["Pipes", () => colors().waterPipe]] },
  power: { label: "Power lines", isHidden: true, keys: [["Lines", () => colors().powerLine]] },
  problems: { label: "Problems", keys: [["Problem", () => "#b3261e"]] },
} satisfies Record<string, Layer>;

type LayerName = keyof typeof LAYERS;

/** Checkboxes that show and hide the map layers, with a legend for each layer. */
export class LayerCheckboxes {
  readonly #boxes = new Map<LayerName, HTMLInputElement>();

  /** @param onChange called when the user shows or hides a layer */
  constructor(list: HTMLElement, onChange: () => void) {
    for (const [name, { label, isHidden, keys }] of Object.entries<Layer>(LAYERS)) {
      const box = element("input", { type: "checkbox", checked: !isHidden });
      box.addEventListener("change", onChange);
      this.#boxes.set(name as LayerName, box);
      const isOnly = keys.length === 1;
      const own = isOnly ? keys.map(([, color]) => swatch(color())) : [];
      const entries = isOnly ? [] : keys.map(([key, color, symbol]) => legendEntry(color(), key, symbol));
      const legend = element("div", { className: "legend" }, ...entries);
      list.append(element("li", {}, element("label", {}, box, ...own, label), legend));
    }
  }

  shows(name: LayerName): boolean {
    return this.#boxes.get(name)?.checked === true;
  }

  /** Checks a layer's box, as the user would. */
  reveal(name: LayerName): void {
    const box = this.#boxes.get(name);
    if (box && !box.checked) box.click();
  }

  /** Shows the layer's checkbox, or hides it if the bridge has no data for the layer. */
  offer(name: LayerName, isOffered: boolean): void {
    const item = this.#boxes.get(name)?.closest("li");
    if (item) item.hidden = !isOffered;
  }
}

function swatch(color: string, symbol = ""): HTMLElement {
  const made = element("span", { className: "swatch", textContent: symbol, ariaHidden: "true" });
  made.style.background = color;
  return made;
}

export function legendEntry(color: string, label: string, symbol = ""): HTMLElement {
  return element("span", { className: "key" }, swatch(color, symbol), label);
}

/** Menu that selects the data map, with the legend of that map. */
export class DataLayerMenu {
  readonly #select = byId<HTMLSelectElement>("data");

  /** @param onChange called when another map is chosen */
  constructor(onChange: () => void) {
    this.#select.addEventListener("change", () => {
      byId("scale").hidden = this.chosen === "";
      onChange();
    });
  }

  /** Name of the chosen map; "" for none. */
  get chosen(): string {
    return this.#select.value;
  }

  /** Fills the menu with the data maps. @param layers null if the bridge has none; the menu is then hidden */
  offer(layers: readonly string[] | null): void {
    byId("data-section").hidden = layers === null;
    const none = this.#select.options[0] as HTMLOptionElement;
    const options = (layers ?? []).map((value) => element("option", { value, textContent: inWords(value) }));
    this.#select.replaceChildren(none, ...options);
  }

  /** Shows what the colours of a map mean. */
  explain({ layer, isGood }: LayerData): void {
    byId("scale-colors").classList.toggle("bad", !isGood);
    const [least, most] = SCALES[layer] ?? SERVICE_SCALE;
    byId("scale-least").textContent = least;
    byId("scale-most").textContent = most;
  }
}

const KEPT_LINES = 200;
const READ_LINE = /^API (OK|FAIL): (Read |List |Inspect |Capture )/;
const RETRY_INTERVAL_MS = 3000;

interface LogLine {
  readonly text: string;
  readonly shownAtMs: number;
  /** Place where a command acted. */
  readonly place?: Place;
}

export interface LogCallbacks {
  /** Called after a command of any client succeeded. */
  readonly onCommand: () => void;
  /** Called when the bridge responds again after an interruption. The bridge may have loaded another city. */
  readonly onReturn: () => void;
  /** Called when a line with a place is clicked. */
  readonly onVisit: (place: Place) => void;
}

/** Shows the bridge's log lines as they arrive, newest first. Reconnects after every restart of the bridge. */
export function showLog(list: HTMLElement, { onCommand, onReturn, onVisit }: LogCallbacks): void {
  let wasBroken = false;
  const reads = byId<HTMLInputElement>("show-reads");
  reads.addEventListener("change", () => list.classList.toggle("with-reads", reads.checked));
  const open = () => {
    const source = new EventSource("/overlay/events");
    source.addEventListener("message", (event) => {
      const line = JSON.parse(event.data) as LogLine;
      list.prepend(item(line, onVisit));
      while (list.children.length > KEPT_LINES) list.lastElementChild?.remove();
      if (line.text.startsWith("API OK") && !READ_LINE.test(line.text)) onCommand();
    });
    source.addEventListener("open", () => {
      if (wasBroken) onReturn();
      wasBroken = false;
    });
    source.addEventListener("error", () => {
      wasBroken = true;
      // After some errors the browser does not reconnect, so open a new source.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_INTERVAL_MS);
    });
  };
  open();
}

function item({ text, shownAtMs, place }: LogLine, onVisit: (place: Place) => void): HTMLElement {
  const time = element("time", { textContent: new Date(shownAtMs).toLocaleTimeString() });
  const classes = [text.startsWith("API FAIL") ? "failed" : "", READ_LINE.test(text) ? "read" : ""];
  return element("li", { className: classes.join(" ").trim() }, time, " ", placeLink(text, place, onVisit));
}

/** Link that moves the map to the place; plain text without a place. */
export function placeLink(text: string, place: Place | undefined, visit: (place: Place) => void): Node {
  if (!place) return document.createTextNode(text);
  const made = button(text, () => visit(place));
  made.className = "link";
  return made;
}
