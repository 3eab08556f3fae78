/** Small line charts of the latest weeks. The last value of each line is shown as text. */
import type { StatisticsRow } from "./api.js";
import { DEMAND_COLORS } from "./colors.js";
import { element, legendEntry } from "./panel.js";
import { formatWholeNumber } from "./words.js";

interface Line {
  readonly label: string;
  readonly color: string;
  readonly value: (sample: StatisticsRow) => number;
}

interface Chart {
  readonly title: string;
  /** Whether to cut off outliers. The high costs of a city's first weeks would flatten all later weeks. */
  readonly clipsOutliers?: boolean;
  readonly lines: readonly Line[];
}

const CHARTS: readonly Chart[] = [
  {
    title: "Citizens",
    lines: [{ label: "Citizens", color: "var(--accent)", value: (week) => week.citizens }],
  },
  {
    title: "Income and expenses",
    clipsOutliers: true,
    lines: [
      { label: "Income", color: "#2e8b57", value: (week) => week.income },
      { label: "Expenses", color: "#c0392b", value: (week) => week.expenses },
    ],
  },
  {
    title: "Money at the week's end",
    lines: [{ label: "Money at the week's end", color: "#8e6bbf", value: (week) => week.balance }],
  },
  {
    title: "Demand",
    lines: [
      { label: "Homes", color: DEMAND_COLORS.residential, value: (week) => week.residentialDemand },
      { label: "Shops", color: DEMAND_COLORS.commercial, value: (week) => week.commercialDemand },
      { label: "Work", color: DEMAND_COLORS.workplace, value: (week) => week.workplaceDemand },
    ],
  },
];

const WIDTH = 220;
const HEIGHT = 48;
const SVG = "http://www.w3.org/2000/svg";

const SHARE_BELOW_PEAKS = 0.95;

/**
 * Range of the chart's axis: from 0, or a negative minimum, to a high percentile of the values.
 * @param shownShare percentile as a fraction, 0 to 1; larger values are cut off
 */
function rangeOf(values: readonly number[], shownShare: number): { low: number; high: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const most = sorted[Math.floor(shownShare * (sorted.length - 1))] ?? 0;
  return { low: Math.min(0, sorted[0] ?? 0), high: Math.max(1, most) };
}

/** @param weeks oldest first */
export function showCharts(place: HTMLElement, weeks: readonly StatisticsRow[]): void {
  place.replaceChildren(...CHARTS.map((chart) => figureOf(chart, weeks)));
}

function figureOf({ title, lines, clipsOutliers }: Chart, weeks: readonly StatisticsRow[]): HTMLElement {
  const values = weeks.flatMap((week) => lines.map(({ value }) => value(week)));
  const { low, high } = rangeOf(values, clipsOutliers ? SHARE_BELOW_PEAKS : 1);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  const last = weeks.at(-1);
  const words = last
    ? lines.map(({ label, value }) => `${label} ${formatWholeNumber(value(last))}`).join(", ")
    : "no week yet";
  svg.setAttribute("aria-label", `${title} over ${weeks.length} weeks: ${words}`);
  for (const { color, value } of lines) {
    const line = document.createElementNS(SVG, "polyline");
    const points = weeks.map((week, i) => {
      const x = (i / Math.max(weeks.length - 1, 1)) * WIDTH;
      const share = Math.min(Math.max((value(week) - low) / (high - low), 0), 1);
      const y = HEIGHT - 1 - share * (HEIGHT - 2);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    line.setAttribute("points", points.join(" "));
    line.setAttribute("stroke", color);
    svg.append(line);
  }
  const keys = lines.map(({ label, color, value }) =>
    legendEntry(color, `${label} ${last ? formatWholeNumber(value(last)) : "–"}`),
  );
  return element("figure", {}, element("figcaption", {}, ...keys), svg);
}
