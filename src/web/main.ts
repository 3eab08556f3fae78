/** The page: reads the city again and again, and shows it. */
import {
  EMPTY_PICTURE,
  type Health,
  omission,
  type Picture,
  read,
  readLand,
  readLife,
  readPlan,
  type Summary,
} from "./api.js";
import { CityMap } from "./map.js";
import { byId, Controls, followMessages, Layers } from "./panel.js";
import { listProblems } from "./problems.js";

const EMBEDDED_INTERVAL_MS = 1000;
/** A running game shows a line for every question it is asked. */
const GAME_INTERVAL_MS = 5000;
const ROUNDS_PER_LIFE = 3;

const layers = new Layers(byId("layers"), () => map.redraw());
const map = new CityMap(byId<HTMLCanvasElement>("map"), layers);
const controls = new Controls(
  (work) =>
    void reportFailure(async () => {
      await work();
      await showSummary();
    }),
);
let picture: Picture = EMPTY_PICTURE;
let planIsStale = true;
let landIsStale = true;
let shownBuildIndex = -1;

byId("zoom-in").addEventListener("click", () => map.view.zoomIn());
byId("zoom-out").addEventListener("click", () => map.view.zoomOut());
byId("fit").addEventListener("click", () => map.fit());

async function showSummary(): Promise<void> {
  const summary = await read<Summary>("/state/summary");
  controls.show(summary);
  planIsStale ||= summary.buildIndex !== shownBuildIndex;
  shownBuildIndex = summary.buildIndex;
}

async function showPlan(): Promise<void> {
  planIsStale = false;
  show({ ...picture, ...(await readPlan()) });
}

async function showLife(): Promise<void> {
  show({ ...picture, ...(await readLife()) });
  listProblems(byId("problems"), picture.problems);
}

async function showLand(): Promise<void> {
  landIsStale = false;
  show({ ...picture, ...(await readLand()) });
}

function show(next: Picture): void {
  picture = next;
  layers.offer("land", picture.terrain !== null);
  layers.offer("zones", picture.zoneBlocks !== null);
  map.show(picture);
}

/** What went wrong stands over the map until something works again. */
async function reportFailure(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    byId("status").textContent = omission(picture);
    return true;
  } catch (error) {
    byId("status").textContent = error instanceof Error ? error.message : String(error);
    return false;
  }
}

async function start(): Promise<void> {
  await showSummary();
  await showPlan();
  await showLife();
  map.fit();
  await showLand();
}

async function follow(round: number): Promise<void> {
  await showSummary();
  const isLifeDue = planIsStale || round % ROUNDS_PER_LIFE === 0;
  if (planIsStale) await showPlan();
  if (isLifeDue) await showLife();
  if (landIsStale) await showLand();
}

async function run(): Promise<void> {
  const health = await read<Health>("/health");
  const isEmbedded = health.mode === "embedded";
  if (isEmbedded) {
    followMessages(
      byId("feed"),
      () => {
        planIsStale = true;
      },
      () => {
        planIsStale = true;
        landIsStale = true;
      },
    );
  } else {
    byId("feed").textContent = "A running game shows its messages itself.";
  }
  const pause = () =>
    new Promise((resolve) => setTimeout(resolve, isEmbedded ? EMBEDDED_INTERVAL_MS : GAME_INTERVAL_MS));
  while (!(await reportFailure(start))) await pause();
  for (let round = 1; ; round++) {
    await pause();
    if (!document.hidden) await reportFailure(() => follow(round));
  }
}

void run();
