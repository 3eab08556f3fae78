/** Shows details of the selected entity, and buttons for its commands. Destructive commands ask for confirmation. */
import { readEntity, readOrNull, type Selection, sendCommand } from "./api.js";
import type { BuildTools } from "./build.js";
import { askFirst, button, byId, element, replaceKeepingFocus } from "./panel.js";
import { SEVERITIES } from "./problems.js";
import { formatWholeNumber, inWords, problemInWords } from "./words.js";

type Facts = Readonly<Record<string, unknown>>;

/** Labels of the shown response fields, in display order. Fields without a value are left out. */
const BUILDING_FACTS: Readonly<Record<string, string>> = {
  state: "State",
  service: "Service",
  levelName: "Level",
  problems: "Problems",
  residents: "Residents",
  households: "Households",
  homes: "Homes",
  workers: "Workers",
  jobs: "Jobs",
  visitors: "Visitors",
  goods: "Goods",
  happiness: "Happiness",
  health: "Health",
  landValue: "Land value",
  crime: "Crime",
  garbage: "Rubbish",
  power: "Power",
  water: "Water",
  sewage: "Drains",
  load: "Load",
  capacity: "Capacity",
  taxRate: "Tax, %",
  id: "Number",
};
const SEGMENT_FACTS: Readonly<Record<string, string>> = {
  displayName: "Kind",
  problems: "Problems",
  lengthMeters: "Length, m",
  lanes: "Lanes",
  volumePerHour: "Cars per hour",
  densityPercent: "Traffic density, %",
  speedKmh: "Speed, km/h",
  crossesWithoutNode: "Crosses roads without a junction",
  id: "Number",
};

/** Fields that are hidden if another field is 0: maps the hidden field to the other field. */
const HIDDEN_IF_ZERO: Readonly<Record<string, string>> = {
  residents: "homes",
  households: "homes",
  homes: "homes",
  workers: "jobs",
  jobs: "jobs",
  visitors: "visitorPlaces",
  goods: "goods",
  load: "capacity",
  capacity: "capacity",
  garbage: "garbage",
  crime: "crime",
  lanes: "lanes",
  happiness: "homes",
  health: "homes",
};
/** Fields that are hidden for service buildings, which list missing supplies under "Problems". */
const GROWABLE_ONLY = ["levelName", "landValue", "power", "water", "sewage"];

/** Panel with the details of the selected entity. */
export class DetailsPanel {
  readonly #runCommand: (work: () => Promise<void>) => void;
  readonly #onSelected: (selection: Selection | null) => void;
  readonly #tools: BuildTools;
  #selection: Selection | null = null;

  /**
   * @param runCommand runs `work`, and shows the error if `work` fails
   * @param onSelected called when the selection changes; null: nothing is selected
   */
  constructor(
    tools: BuildTools,
    runCommand: (work: () => Promise<void>) => void,
    onSelected: (selection: Selection | null) => void,
  ) {
    this.#tools = tools;
    this.#runCommand = runCommand;
    this.#onSelected = onSelected;
    byId("details-close").addEventListener("click", () => this.close());
  }

  get selection(): Selection | null {
    return this.#selection;
  }

  select(selection: Selection): void {
    this.#selection = selection;
    this.#onSelected(selection);
    this.#runCommand(async () => {
      await this.refresh();
      // The browser keeps what was in view when the details appear above it.
      (byId("details").parentElement as HTMLElement).scrollTop = 0;
    });
  }

  async refresh(): Promise<void> {
    const selection = this.#selection;
    if (!selection) return;
    const made = selection.kind === "ground" ? await groundOf(selection) : await this.#entity(selection);
    if (selection !== this.#selection) return;
    const section = byId("details");
    section.hidden = false;
    replaceKeepingFocus(byId("details-body"), made);
  }

  async #entity({ kind, id }: { kind: "building" | "segment"; id: number }): Promise<Node[]> {
    const facts = await readEntity<Facts>(`/state/${kind}s/${id}`);
    if (!facts) {
      const textContent = `This ${kind === "building" ? "building" : "road"} is not in the city any more.`;
      return [element("p", { textContent })];
    }
    Object.assign(facts, facts.traffic);
    const isSite = kind === "building" && !String(facts.flags).includes("Completed");
    if (isSite) Object.assign(facts, { state: "being built" });
    const label = String(facts.name || facts.displayName);
    const title = element("h3", { textContent: label });
    const list = factList(facts, kind === "building" ? BUILDING_FACTS : SEGMENT_FACTS);
    const entityType = kind === "building" ? "building" : "netSegment";
    const bulldoze = button("Bulldoze", () =>
      askFirst(`Bulldoze ${label}? ${this.#tools.operations.promiseFor("bulldoze")}`, () =>
        this.#runCommand(() => this.#tools.bulldoze(label, entityType, id).then(() => this.close())),
      ),
    );
    if (kind === "segment") return [title, list, bulldoze];
    const active = facts.active === true;
    // A building site, a ruin and a flooded building cannot be switched on.
    const canTurn = active || String(facts.problems).includes("TurnedOff");
    if (!canTurn) return [title, list, bulldoze];
    const turn = button(active ? "Switch off" : "Switch on", () => {
      const act = async () => {
        await sendCommand("set-building-active", { id, active: !active });
        await this.refresh();
      };
      if (active) askFirst(`Switch off ${label}? Its service stops.`, () => this.#runCommand(act));
      else this.#runCommand(act);
    });
    return [title, list, turn, bulldoze];
  }

  /** Selects nothing. */
  close(): void {
    this.#selection = null;
    this.#onSelected(null);
    byId("details").hidden = true;
  }
}

function factList(facts: Facts, labels: Readonly<Record<string, string>>): HTMLElement {
  const known = Object.entries(labels).filter(([key]) => hasValue(facts[key]) && applies(facts, key));
  const rows = known.flatMap(([key, label]) => [
    element("dt", { textContent: label }),
    element("dd", { textContent: valueInWords(key, facts[key]) }),
  ]);
  return element("dl", {}, ...rows);
}

function applies(facts: Facts, key: string): boolean {
  const count = HIDDEN_IF_ZERO[key];
  if (count !== undefined && facts[count] === 0) return false;
  return !(GROWABLE_ONLY.includes(key) && facts.landValueParts === null);
}

function hasValue(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0)
  );
}

function valueInWords(key: string, value: unknown): string {
  if (key === "problems")
    return String(value)
      .split(", ")
      .filter((name) => !SEVERITIES.includes(name))
      .map(problemInWords)
      .join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return formatWholeNumber(value);
  return Array.isArray(value) ? value.join(", ") : inWords(String(value));
}

interface CoverageAnswer {
  readonly samples: readonly {
    readonly services: readonly { readonly service: string; readonly quality: number }[];
  }[];
}

/** Shows how well services cover a place on the ground. */
async function groundOf({ x, z }: { x: number; z: number }): Promise<Node[]> {
  const answer = await readOrNull<CoverageAnswer>(`/state/coverage?x=${x.toFixed(1)}&z=${z.toFixed(1)}`);
  const title = element("h3", { textContent: "Services that reach this place" });
  const services = answer?.samples[0]?.services ?? [];
  const facts = services.map(({ service, quality }) => [service, `${Math.round(quality * 100)} %`] as const);
  const labels = Object.fromEntries(facts.map(([service]) => [service, inWords(service)]));
  return [title, factList(Object.fromEntries(facts), labels)];
}
