/** The problems of a building: raising and clearing them, and how grave they become with time. */
import { PROBLEMS_1, PROBLEMS_2, type ProblemName, type Severity } from "../../terms.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import { NO_PROBLEMS, type SimBuilding } from "../state/entities.js";

const ORDER = new Map<ProblemName, number>(
  [...PROBLEMS_1, ...PROBLEMS_2].map((name, index) => [name, index]),
);

const MAJOR_AFTER_FRAMES = FRAMES_PER_WEEK;
const FATAL_AFTER_FRAMES = 2 * FRAMES_PER_WEEK;
/** A grave problem this old drives everybody out. */
export const UNBEARABLE_AFTER_FRAMES = 3 * FRAMES_PER_WEEK;

/** Problems nobody puts up with for ever. The others stay warnings. */
const GRAVE: ReadonlySet<ProblemName> = new Set<ProblemName>([
  "Electricity",
  "Water",
  "Sewage",
  "RoadNotConnected",
  "Garbage",
  "Death",
  "TaxesTooHigh",
  "NoWorkers",
  "NoCustomers",
  "NoGoods",
  "NoPlaceforGoods",
]);

/** Raises or clears one problem; a problem already there keeps its age. */
export function setProblem(building: SimBuilding, name: ProblemName, present: boolean, frame: number): void {
  const { names } = building.problems;
  const at = names.indexOf(name);
  if (present === at >= 0) return;
  const entries = names.map((other, i) => ({ name: other, since: building.problemSince[i] as number }));
  if (present) entries.push({ name, since: frame });
  else entries.splice(at, 1);
  entries.sort((a, b) => (ORDER.get(a.name) as number) - (ORDER.get(b.name) as number));
  building.problemSince = entries.map((entry) => entry.since);
  building.problems =
    entries.length === 0
      ? NO_PROBLEMS
      : { names: entries.map((entry) => entry.name), severity: building.problems.severity };
}

export function hasProblem(building: SimBuilding, name: ProblemName): boolean {
  return building.problems.names.includes(name);
}

/** The grave problem that has lasted longest, with its age in frames. */
export function gravest(building: SimBuilding, frame: number): { name: ProblemName; age: number } | null {
  let worst: { name: ProblemName; age: number } | null = null;
  building.problems.names.forEach((name, i) => {
    const age = frame - (building.problemSince[i] as number);
    if (GRAVE.has(name) && (worst === null || age > worst.age)) worst = { name, age };
  });
  return worst;
}

/** Lets the severity follow the age of the gravest problem. */
export function updateSeverity(building: SimBuilding, frame: number): void {
  if (building.problems.names.length === 0) return;
  const age = gravest(building, frame)?.age ?? 0;
  const severity: Severity =
    age >= FATAL_AFTER_FRAMES ? "fatal" : age >= MAJOR_AFTER_FRAMES ? "major" : "warning";
  if (severity !== building.problems.severity)
    building.problems = { names: building.problems.names, severity };
}

export function clearProblems(building: SimBuilding): void {
  building.problems = NO_PROBLEMS;
  building.problemSince = [];
}
