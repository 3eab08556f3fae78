/** Advice of the city in words, with a button for what it proposes. A new city shows its first steps. */
import { type Place, readOrNull } from "./api.js";
import type { BuildTools } from "./build.js";
import { button, byId, element, placeLink } from "./panel.js";
import { formatWholeNumber, inWords, problemInWords } from "./words.js";

interface AdviceRow {
  readonly topic: string;
  readonly message: string;
  readonly value: number;
  readonly unit: string;
  readonly position: Place;
  readonly commands: readonly {
    readonly command: string;
    readonly fields: Readonly<Record<string, unknown>>;
  }[];
}

const SHOWN = 4;
const MOST_STEPS = 6;
const STEP_BUTTONS: Readonly<Record<string, string>> = {
  "first street": "Lay a street",
  "first power": "Build a wind turbine",
  "first water": "Build a water tower",
  "first drains": "Build a treatment plant",
  "first homes": "Zone homes",
  "first week": "Start the clock",
};
/** What homes lack that have no such service. */
const LACKED: Readonly<Record<string, string>> = { garbage: "rubbish collection", death: "burials" };
const DEMANDS: Readonly<Record<string, string>> = {
  "residential demand": "People want more homes",
  "commercial demand": "People want more shops",
  "workplace demand": "People want more work",
};

/** Number of commands under way. Until they end, the list keeps its buttons, of which the pressed ones are disabled. */
let running = 0;

/** @param runCommand runs `work`, and shows the error if `work` fails */
export async function showAdvice(
  tools: BuildTools,
  visit: (place: Place) => void,
  runCommand: (work: () => Promise<void>) => void,
): Promise<void> {
  const answer = await readOrNull<{ advice: AdviceRow[] }>(`/state/advice?limit=${MOST_STEPS}`);
  if (answer === null || running > 0) return;
  const rows = answer.advice;
  const steps = rows.filter(({ unit }) => unit === "step");
  const shown = steps.length > 0 ? steps : withoutRepeats(rows, tools).slice(0, SHOWN);
  byId("advice").hidden = shown.length === 0;
  byId("advice-title").textContent = steps.length > 0 ? "First steps" : "Advice";
  const list = byId("advice-list");
  const state = JSON.stringify([shown, tools.areLoaded]);
  // New buttons on every poll would lose the focus.
  if (list.dataset.state === state) return;
  list.dataset.state = state;
  const hadFocus = list.contains(document.activeElement);
  const act = (label: string, commands: AdviceRow["commands"]) => {
    const sent = commands.map(({ command: name, fields: body }) => ({ name, body }));
    const made = button(label, () => {
      // A second click while the network is slow would build twice.
      made.disabled = true;
      running++;
      delete list.dataset.state;
      runCommand(async () => {
        try {
          await tools.operations.run(label, sent);
        } finally {
          running--;
          await showAdvice(tools, visit, runCommand);
        }
      });
    });
    return made;
  };
  list.replaceChildren(...shown.map((row) => item(row, tools, visit, act)));
  if (hadFocus) list.querySelector("button")?.focus();
}

/** Leaves out rows that propose what a more important row proposes: want of work and unemployment are one. */
function withoutRepeats(rows: readonly AdviceRow[], tools: BuildTools): AdviceRow[] {
  const proposed = new Set<string>();
  return rows.filter(({ commands }) => {
    const labels = commands.map((each) => labelOf(each, tools));
    const isRepeat = labels.length > 0 && labels.every((label) => proposed.has(label));
    for (const label of labels) proposed.add(label);
    return !isRepeat;
  });
}

function item(
  row: AdviceRow,
  tools: BuildTools,
  visit: (place: Place) => void,
  act: (label: string, commands: AdviceRow["commands"]) => HTMLElement,
): HTMLElement {
  const { topic, unit, position, commands } = row;
  const isStep = unit === "step";
  const text = element("p", {}, isStep ? textOf(row) : placeLink(textOf(row), position, visit));
  const doable = commands.filter(({ fields }) => fields.suggest !== true);
  const made = isStep && doable.length > 0 ? [act(STEP_BUTTONS[topic] ?? "Do it", doable)] : [];
  const buttons = isStep ? made : doable.map((each) => act(labelOf(each, tools), [each]));
  return element("li", {}, text, ...buttons);
}

function textOf({ topic, message, value, unit }: AdviceRow): string {
  const demand = DEMANDS[topic];
  if (demand) return `${demand} (${formatWholeNumber(value)} of 100).`;
  if (unit === "buildings")
    return `${problemInWords(topic)}: ${formatWholeNumber(value)} building${value === 1 ? "" : "s"}.`;
  const plain = message
    .replace(/ \d+ (has|is) /, " $1 ")
    .replace(/\d{4,}/g, (digits) => formatWholeNumber(Number(digits)));
  return plain.replace(new RegExp(`\\b${topic}\\b`), LACKED[topic] ?? inWords(topic).toLowerCase());
}

function labelOf({ command, fields }: AdviceRow["commands"][number], tools: BuildTools): string {
  switch (command) {
    case "place-building":
      return `Build: ${tools.labelOf(String(fields.buildingPrefab))}`;
    case "set-zone":
      return `Zone: ${inWords(String(fields.zone))}`;
    case "set-tax-rate":
      return `Set taxes to ${fields.rate} %`;
    case "connect":
      return `Lay: ${tools.labelOf(String(fields.roadPrefab))}`;
    case "upgrade-road":
      return "Widen the road";
    case "set-building-active":
      return "Switch off the service that is needed least";
    case "set-building-emptying":
      return "Empty it";
    case "accept-bailout":
      return "Accept the money";
    default:
      return inWords(command.replaceAll("-", " "));
  }
}
