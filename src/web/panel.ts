/** What stands beside the map: clock, demand and speed; the layers; the messages. */
import { command, type Summary } from "./api.js";
import {
  colors,
  DEMAND_COLORS,
  FIRST_ZONE,
  GROWABLE_COLORS,
  RUIN_COLOR,
  ZONE_COLORS,
  ZONE_NAMES,
} from "./colors.js";

/** @throws Error when the page has no such element */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element #${id}`);
  return element as T;
}

/** A new element; what is inside it may be text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
}

const SPEEDS = [1, 2, 3] as const;
const DEMANDS = [
  { key: "residential", label: "Homes" },
  { key: "commercial", label: "Shops" },
  { key: "workplace", label: "Work" },
] as const;

/** Clock, citizens, demand bars, and the buttons for the speed of the simulation. */
export class Controls {
  readonly #speedButtons: readonly HTMLElement[];
  readonly #bars: readonly HTMLElement[];
  #selectedSpeed = 1;

  /** @param order does what a button asks for, and tells the person when that fails */
  constructor(order: (work: () => Promise<void>) => void) {
    const setSpeed = (paused: boolean, speed: number) =>
      order(() => command("set-simulation-speed", { paused, speed }));
    this.#speedButtons = [
      button("Pause", () => setSpeed(true, this.#selectedSpeed)),
      ...SPEEDS.map((speed) => button(`Speed ${speed}`, () => setSpeed(false, speed))),
    ];
    byId("speed").append(...this.#speedButtons);
    this.#bars = DEMANDS.map(({ key, label }) => demandBar(label, DEMAND_COLORS[key]));
    byId("demand").append(...this.#bars);
  }

  show({ gameTime, citizens, simulation, demand }: Summary): void {
    byId("clock").textContent = gameTime.replace("T", " ").slice(0, 16);
    byId("citizens").textContent = citizens.count.toLocaleString("en");
    this.#selectedSpeed = simulation.selectedSpeed;
    const pressed = simulation.paused ? 0 : simulation.selectedSpeed;
    this.#speedButtons.forEach((element, i) => {
      element.setAttribute("aria-pressed", String(i === pressed));
    });
    this.#bars.forEach((bar, i) => {
      const { key } = DEMANDS[i] as (typeof DEMANDS)[number];
      fillBar(bar, demand[key]);
    });
  }
}

export function button(label: string, onClick: () => void): HTMLElement {
  const made = element("button", { type: "button", textContent: label });
  made.addEventListener("click", onClick);
  return made;
}

function demandBar(label: string, color: string): HTMLElement {
  const fill = element("div", { className: "fill" });
  fill.style.background = color;
  const bar = element("span", { className: "bar", role: "meter", ariaLabel: `Demand: ${label}` }, fill);
  Object.assign(bar, { ariaValueMin: "0", ariaValueMax: "100" });
  const name = element("span", { className: "name", textContent: label });
  return element("div", { className: "demand" }, name, bar, element("output", {}));
}

function fillBar(row: HTMLElement, value: number): void {
  row.querySelector("[role=meter]")?.setAttribute("aria-valuenow", String(value));
  (row.querySelector(".fill") as HTMLElement).style.width = `${value}%`;
  (row.querySelector("output") as HTMLElement).textContent = String(value);
}

interface Key {
  readonly label: string;
  readonly color: () => string;
}

interface Layer {
  readonly label: string;
  readonly shown: boolean;
  readonly keys: readonly Key[];
}

/** Layers of the map, and what their colours mean. */
const LAYERS = {
  land: {
    label: "Terrain and water",
    shown: true,
    keys: [
      { label: "Water", color: () => `rgb(${colors().water.join(" ")})` },
      { label: "Hills", color: () => `rgb(${colors().hill.join(" ")})` },
    ],
  },
  zones: {
    label: "Zones",
    shown: true,
    keys: ZONE_NAMES.map((label, i) => ({ label, color: () => ZONE_COLORS[i + FIRST_ZONE] ?? "" })),
  },
  roads: {
    label: "Roads and paths",
    shown: true,
    keys: [
      { label: "Small", color: () => colors().smallRoad },
      { label: "Medium", color: () => colors().mediumRoad },
      { label: "Large", color: () => colors().largeRoad },
      { label: "Highway", color: () => colors().highway },
      { label: "Path", color: () => colors().path },
      { label: "Track", color: () => colors().track },
    ],
  },
  buildings: {
    label: "Buildings",
    shown: true,
    keys: [
      { label: "Homes", color: () => GROWABLE_COLORS.Residential as string },
      { label: "Shops", color: () => GROWABLE_COLORS.Commercial as string },
      { label: "Industry", color: () => GROWABLE_COLORS.Industrial as string },
      { label: "Offices", color: () => GROWABLE_COLORS.Office as string },
      { label: "Given up", color: () => RUIN_COLOR },
    ],
  },
  services: { label: "Services", shown: true, keys: [{ label: "Services", color: () => colors().service }] },
  water: { label: "Water pipes", shown: false, keys: [{ label: "Pipes", color: () => colors().waterPipe }] },
  power: { label: "Power lines", shown: false, keys: [{ label: "Lines", color: () => colors().powerLine }] },
  problems: { label: "Problems", shown: true, keys: [{ label: "Problem", color: () => "#b3261e" }] },
} satisfies Record<string, Layer>;

type LayerName = keyof typeof LAYERS;

/** The layers of the map: the boxes that show and hide them, and what each colour of theirs means. */
export class Layers {
  readonly #boxes = new Map<LayerName, HTMLInputElement>();

  /** @param onChange called when a layer appears or disappears */
  constructor(list: HTMLElement, onChange: () => void) {
    for (const [name, { label, shown, keys }] of Object.entries<Layer>(LAYERS)) {
      const box = element("input", { type: "checkbox", checked: shown });
      box.addEventListener("change", onChange);
      this.#boxes.set(name as LayerName, box);
      const own = keys.length === 1 ? keys.map(({ color }) => swatch(color())) : [];
      const legend = keys.length === 1 ? [] : keys.map(({ color, label }) => keyOf(color(), label));
      list.append(
        element(
          "li",
          {},
          element("label", {}, box, ...own, label),
          element("div", { className: "legend" }, ...legend),
        ),
      );
    }
  }

  shows(name: LayerName): boolean {
    return this.#boxes.get(name)?.checked === true;
  }

  /** A layer that the bridge has nothing for is not there. */
  offer(name: LayerName, isOffered: boolean): void {
    const item = this.#boxes.get(name)?.closest("li");
    if (item) item.hidden = !isOffered;
  }
}

function swatch(color: string): HTMLElement {
  const made = element("span", { className: "swatch" });
  made.style.background = color;
  return made;
}

/** What a colour means. */
export function keyOf(color: string, label: string): HTMLElement {
  return element("span", { className: "key" }, swatch(color), label);
}

/** The choice of the data that lies over the map, and what its colours mean. */
export class DataChoice {
  readonly #select = byId<HTMLSelectElement>("data");

  /** @param onChange called when another layer is chosen */
  constructor(onChange: () => void) {
    this.#select.addEventListener("change", () => {
      byId("scale").hidden = this.chosen === "";
      onChange();
    });
  }

  /** Empty for none. */
  get chosen(): string {
    return this.#select.value;
  }

  /** Null where the bridge tells of no data. */
  offer(layers: readonly string[] | null): void {
    byId("data-section").hidden = layers === null;
    for (const name of layers ?? []) {
      this.#select.append(element("option", { value: name, textContent: inPlainWords(name) }));
    }
  }
}

/** "Land value" for `landValue`. */
export function inPlainWords(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.replace(/^./, (letter) => letter.toUpperCase());
}

const KEPT_LINES = 60;
const COMMAND_LINE = /^API OK: (?!Read |List |Inspect )/;
const RETRY_INTERVAL_MS = 3000;

/**
 * Shows the bridge's messages as they arrive, newest first, for as long as the page is open, through every restart of the bridge.
 * @param onCommand called after a message that somebody's command succeeded
 * @param onReturn called when messages come again after they broke off: it may be another city
 */
export function followMessages(list: HTMLElement, onCommand: () => void, onReturn: () => void): void {
  let wasBroken = false;
  const open = () => {
    const source = new EventSource("/overlay/events");
    source.addEventListener("message", (event) => {
      const { text, shownAtMs } = JSON.parse(event.data) as { text: string; shownAtMs: number };
      list.prepend(line(text, shownAtMs));
      while (list.children.length > KEPT_LINES) list.lastElementChild?.remove();
      if (COMMAND_LINE.test(text)) onCommand();
    });
    source.addEventListener("open", () => {
      if (wasBroken) onReturn();
      wasBroken = false;
    });
    source.addEventListener("error", () => {
      wasBroken = true;
      // The browser tries again by itself only where it found nobody, and not in all browsers even then.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_INTERVAL_MS);
    });
  };
  open();
}

function line(text: string, shownAtMs: number): HTMLElement {
  const time = element("time", { textContent: new Date(shownAtMs).toLocaleTimeString() });
  const className = text.startsWith("API FAIL") ? "failed" : "";
  return element("li", { className }, time, ` ${text}`);
}
