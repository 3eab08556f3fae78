/** What a tool builds: roads and pipes, zones, or services, in groups with price, reach and purpose. */
import { read } from "./api.js";
import { FIRST_ZONE_VALUE, ZONE_COLORS, ZONES } from "./colors.js";
import { type LineLayer, layerOf } from "./drawing.js";
import { byId, element } from "./panel.js";
import { formatWholeNumber, inWords, type Purpose, purposeOf } from "./words.js";

export type ChoiceKind = "road" | "zone" | "service";

export interface Choice {
  /** The bridge's name. */
  readonly name: string;
  readonly label: string;
  readonly group: string;
  readonly price: string;
  readonly purpose: string;
  readonly color?: string;
  /** Layer that shows such a network. */
  readonly layer?: LineLayer;
  /** Width and length of a building, in cells. */
  readonly prefab?: { readonly width: number; readonly length: number };
}

/** Whether the user points with a finger, on a screen that may be small. */
export const TOUCH = matchMedia("(pointer: coarse)");

const GROWABLE = /^(Residential|Commercial|Industrial|Office)$/;

interface Prefab extends Purpose {
  readonly name: string;
  readonly displayName: string;
  readonly growable?: boolean;
  readonly elevation?: string;
  readonly constructionCost?: number;
  readonly upkeepPerWeek?: number;
  readonly costPerMeter?: number;
  /** In cells. */
  readonly width?: number;
  readonly length?: number;
}

/** The list of choices under the tools. It folds to the chosen one, so that the map stays in sight. */
export class Choices {
  readonly #folder = byId<HTMLDetailsElement>("choices");
  readonly #groups = byId<HTMLSelectElement>("choice-group");
  readonly #all: Record<ChoiceKind, readonly Choice[]> = { road: [], zone: zoneChoices(), service: [] };
  readonly #chosen: { [Kind in ChoiceKind]?: Choice | undefined } = {};
  #kind: ChoiceKind = "road";

  /** @param onChange called when another thing is chosen */
  constructor(readonly onChange: () => void) {
    this.#groups.addEventListener("change", () => {
      const first = this.#all[this.#kind].find(({ group }) => group === this.#groups.value);
      if (first) this.#choose(first);
      this.#list();
      this.#folder.open = true;
    });
  }

  /** Reads what the bridge can build. */
  async load(): Promise<void> {
    const [{ networks }, { buildings }] = await Promise.all([
      read<{ networks: Prefab[] }>("/prefabs/networks"),
      read<{ buildings: Prefab[] }>("/prefabs/buildings"),
    ]);
    const isOffered = ({ elevation = "ground" }: Prefab) => elevation === "ground" || elevation === "bridge";
    this.#all.road = networks.filter(isOffered).map(roadChoice);
    const placed = buildings.filter(({ growable, service }) => !(growable ?? GROWABLE.test(service)));
    this.#all.service = placed.map(serviceChoice);
    this.#chosen.road ??= this.#all.road.find(({ name }) => name === "Basic Road");
    // A tool may be open already, with an empty list.
    if (!this.#folder.hidden) this.show(this.#kind);
  }

  /** Whether the bridge has said what it can build. */
  get areLoaded(): boolean {
    return this.#all.service.length > 0;
  }

  /** Label of a building or network by the bridge's name. */
  labelOf(name: string): string {
    const known = [...this.#all.service, ...this.#all.road].find((each) => each.name === name);
    return known?.label ?? inWords(name);
  }

  /** The choice of the tool; undefined before the bridge has answered. */
  of(kind: ChoiceKind): Choice | undefined {
    return this.#chosen[kind] ?? this.#all[kind][0];
  }

  /** Shows the choices of a tool; null hides them. */
  show(kind: ChoiceKind | null): void {
    this.#folder.hidden = kind === null;
    if (!kind) return;
    this.#kind = kind;
    const groups = [...new Set(this.#all[kind].map(({ group }) => group))];
    this.#groups.hidden = groups.length < 2;
    this.#groups.replaceChildren(...groups.map((value) => element("option", { value, textContent: value })));
    this.#groups.value = this.of(kind)?.group ?? "";
    this.#folder.open = kind !== "road";
    this.#list();
  }

  /** Folds the list to the chosen thing. */
  fold(): void {
    this.#folder.open = false;
  }

  #choose(choice: Choice): void {
    this.#chosen[this.#kind] = choice;
    if (TOUCH.matches) this.fold();
    this.#summarize();
    this.onChange();
  }

  #summarize(): void {
    const { label = "", price = "" } = this.of(this.#kind) ?? {};
    byId("chosen").textContent = price === "" ? label : `${label} · ${price}`;
  }

  #list(): void {
    const now = this.of(this.#kind);
    const inGroup = this.#all[this.#kind].filter(({ group }) => group === now?.group);
    byId("choice-list").replaceChildren(...inGroup.map((choice) => this.#item(choice, choice === now)));
    this.#summarize();
  }

  #item(choice: Choice, checked: boolean): HTMLElement {
    const { name: value, label, price, purpose, color } = choice;
    const radio = element("input", { type: "radio", name: "choice", value, checked });
    radio.addEventListener("change", () => this.#choose(choice));
    const swatch = element("span", { className: "swatch", ariaHidden: "true" });
    if (color) swatch.style.background = color;
    const about = [price, purpose].filter((text) => text !== "").join(". ");
    const words = element("span", {}, element("b", { textContent: label }));
    if (about !== "") words.append(element("span", { className: "name", textContent: about }));
    return element("label", { className: "choice" }, radio, ...(color ? [swatch] : []), words);
  }
}

function zoneChoices(): Choice[] {
  const zones = ZONES.map((name, i) => {
    return { name, color: ZONE_COLORS[i + FIRST_ZONE_VALUE] as string };
  });
  const all = [...zones, { name: "Unzoned", color: "#9aa39c" }];
  return all.map((zone) => ({ ...zone, label: inWords(zone.name), group: "Zones", price: "", purpose: "" }));
}

const NETWORK_GROUPS: Readonly<Record<string, string>> = { Water: "Pipes", Electricity: "Power lines" };

function roadChoice({ name, displayName, service, elevation, costPerMeter }: Prefab): Choice {
  const price = costPerMeter === undefined ? "" : `${formatWholeNumber(costPerMeter)} a metre`;
  const group = elevation === "bridge" ? "Bridges" : (NETWORK_GROUPS[service] ?? inWords(service));
  return { name, label: displayName, group, price, purpose: "", layer: layerOf(name, service) };
}

function serviceChoice(prefab: Prefab): Choice {
  const { name, displayName, service, constructionCost, upkeepPerWeek = 0, width, length } = prefab;
  const weekly = upkeepPerWeek > 0 ? `, ${formatWholeNumber(upkeepPerWeek)} a week` : "";
  const price = constructionCost === undefined ? "" : `${formatWholeNumber(constructionCost)}${weekly}`;
  const label = inWords(displayName);
  const size = width && length ? { prefab: { width, length } } : {};
  return { name, label, group: inWords(service), price, purpose: purposeOf(prefab), ...size };
}
