/** Problem icons on the map, and the list of problem counts. */
import type { Place, ProblemRow } from "./api.js";
import type { Colors } from "./colors.js";
import { button, element } from "./panel.js";
import { problemInWords } from "./words.js";

interface Icon {
  readonly color: string;
  /** SVG path of the icon, at most 7 units from the origin. */
  readonly shape: string;
}

const DROP = "M0-6C3-2 4 0 4 2A4 4 0 0 1-4 2C-4 0-3-2 0-6Z";
const BOLT = "M1-6L-4 1H-.5L-1 6L4-1H.5Z";
const CROSS = "M-1.5-6H1.5V-2.5H4.5V.5H1.5V6H-1.5V.5H-4.5V-2.5H-1.5Z";
const MARK = "M-1.3-6H1.3L.9 2H-.9ZM-1.3 3.4H1.3V6H-1.3Z";
const ROAD = "M-2-6H-.6V6H-5ZM2-6H.6V6H5Z";
const FLAME = "M0-6C4-3 5 0 4 3C3 6-3 6-4 3C-5 1-3-1-2-2C-1-3 0-4 0-6Z";
const BIN = "M-4-5H4V-3.5H-4ZM-3.5-2.5H3.5L2.8 6H-2.8Z";
const HOUSE = "M0-6L6 0H4V5H-4V0H-6Z";

const ICONS: Readonly<Record<string, Icon>> = {
  Electricity: { color: "#b58900", shape: BOLT },
  ElectricityNotConnected: { color: "#b58900", shape: BOLT },
  Water: { color: "#1666c5", shape: DROP },
  WaterNotConnected: { color: "#1666c5", shape: DROP },
  Sewage: { color: "#7a5230", shape: DROP },
  DirtyWater: { color: "#7a5230", shape: DROP },
  Garbage: { color: "#5d6b2f", shape: BIN },
  Death: { color: "#444444", shape: CROSS },
  Fire: { color: "#c62828", shape: FLAME },
  RoadNotConnected: { color: "#a8480b", shape: ROAD },
  RoadAccessFailed: { color: "#a8480b", shape: ROAD },
  Abandoned: { color: "#6d4c41", shape: HOUSE },
};
const OTHER: Icon = { color: "#b3261e", shape: MARK };
/** Entries of problem lists that give only a severity. They are not shown as problems. */
export const SEVERITIES = ["MajorProblem", "FatalProblem"];
/** Radius of an icon on the map. On the screen, it is kept within RADIUS_PIXELS to be legible. */
const RADIUS_METERS = 5;
const RADIUS_PIXELS = { least: 2, most: 10, withSymbol: 6 };
/** Radius of an icon in the units of its SVG path. */
const SHAPE_RADIUS = 9;

export function drawProblems(
  context: CanvasRenderingContext2D,
  problems: readonly ProblemRow[],
  moveTo: (place: Place) => void,
  colors: Colors,
  pixelsPerMeter: number,
): void {
  const { least, most, withSymbol } = RADIUS_PIXELS;
  const radius = Math.min(Math.max(RADIUS_METERS * pixelsPerMeter, least), most);
  for (const { problemNames, position } of problems) {
    const { color, shape } = iconOf(problemNames);
    moveTo(position);
    context.beginPath();
    context.arc(0, 0, radius, 0, 2 * Math.PI);
    context.fillStyle = color;
    context.fill();
    if (radius < withSymbol) continue;
    context.strokeStyle = colors.outline;
    context.lineWidth = 1.5;
    context.stroke();
    context.scale(radius / SHAPE_RADIUS, radius / SHAPE_RADIUS);
    context.fillStyle = colors.symbol;
    context.fill(new Path2D(shape));
  }
}

/**
 * Lists the problems by name with their counts. A click visits the next place with this problem.
 * @param visit called with the problem to show
 */
export function listProblems(
  list: HTMLElement,
  problems: readonly ProblemRow[],
  visit: (problem: ProblemRow) => void,
): void {
  const named = problems.flatMap((problem) => problem.problemNames.map((name) => ({ name, problem })));
  const known = named.filter(({ name }) => !SEVERITIES.includes(name));
  const byName = [...Map.groupBy(known, ({ name }) => name)].sort(([, a], [, b]) => b.length - a.length);
  const focused = list.querySelector<HTMLElement>(":focus")?.dataset.name;
  const buttons = byName.map(([name, all]) => {
    const made = button(`${problemInWords(name)}: ${all.length}`, () => {
      const turn = (turns.get(name) ?? -1) + 1;
      turns.set(name, turn);
      visit((all[turn % all.length] as (typeof all)[number]).problem);
    });
    made.className = "link";
    made.dataset.name = name;
    return made;
  });
  list.replaceChildren(
    ...(buttons.length === 0 ? ["None"] : buttons).map((inside) => element("li", {}, inside)),
  );
  // Restores the focus after the list was replaced.
  buttons.find(({ dataset }) => dataset.name === focused)?.focus();
}

/** Number of clicks on each problem. */
const turns = new Map<string, number>();

function iconOf(names: readonly string[]): Icon {
  const known = names.find((name) => name in ICONS);
  return (known && ICONS[known]) || OTHER;
}
