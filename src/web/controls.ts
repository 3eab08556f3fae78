/** Clock, citizens, demand bars, and the buttons for the speed of the simulation. */
import { command, type Summary } from "./api.js";
import { DEMAND_COLORS } from "./colors.js";
import { byId } from "./elements.js";

const SPEEDS = [1, 2, 3] as const;
const DEMANDS = [
  { key: "residential", label: "Homes" },
  { key: "commercial", label: "Shops" },
  { key: "workplace", label: "Work" },
] as const;

export class Controls {
  private readonly speedButtons: readonly HTMLButtonElement[];
  private readonly bars: readonly HTMLElement[];
  private selectedSpeed = 1;

  /** @param order does what a button asks for, and tells the person when that fails */
  constructor(order: (work: () => Promise<void>) => void) {
    const setSpeed = (paused: boolean, speed: number) =>
      order(() => command("set-simulation-speed", { paused, speed }));
    this.speedButtons = [
      button("Pause", () => setSpeed(true, this.selectedSpeed)),
      ...SPEEDS.map((speed) => button(`Speed ${speed}`, () => setSpeed(false, speed))),
    ];
    byId("speed").append(...this.speedButtons);
    this.bars = DEMANDS.map(({ key, label }) => demandBar(label, DEMAND_COLORS[key]));
    byId("demand").append(...this.bars);
  }

  show({ gameTime, citizens, simulation, demand }: Summary): void {
    byId("clock").textContent = gameTime.replace("T", " ").slice(0, 16);
    byId("citizens").textContent = citizens.count.toLocaleString("en");
    this.selectedSpeed = simulation.selectedSpeed;
    const pressed = simulation.paused ? 0 : simulation.selectedSpeed;
    this.speedButtons.forEach((element, i) => {
      element.setAttribute("aria-pressed", String(i === pressed));
    });
    this.bars.forEach((bar, i) => {
      const { key } = DEMANDS[i] as (typeof DEMANDS)[number];
      fillBar(bar, demand[key]);
    });
  }
}

function button(label: string, onClick: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = label;
  element.addEventListener("click", onClick);
  return element;
}

function demandBar(label: string, color: string): HTMLElement {
  const name = document.createElement("span");
  name.className = "name";
  name.textContent = label;
  const bar = document.createElement("span");
  bar.className = "bar";
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-label", `Demand: ${label}`);
  bar.setAttribute("aria-valuemin", "0");
  bar.setAttribute("aria-valuemax", "100");
  const fill = document.createElement("div");
  fill.className = "fill";
  fill.style.background = color;
  bar.append(fill);
  const row = document.createElement("div");
  row.className = "demand";
  row.append(name, bar, document.createElement("output"));
  return row;
}

function fillBar(row: HTMLElement, value: number): void {
  row.querySelector("[role=meter]")?.setAttribute("aria-valuenow", String(value));
  (row.querySelector(".fill") as HTMLElement).style.width = `${value}%`;
  (row.querySelector("output") as HTMLElement).textContent = String(value);
}
