/** The page: reads the city again and again, and shows it. */
import {
  BuildingTiles,
  EMPTY_PICTURE,
  type Health,
  type LayerData,
  omission,
  type Picture,
  read,
  readBuildings,
  readIfOffered,
  readLand,
  readNetworkProblems,
  readSegments,
  readZones,
  type Summary,
} from "./api.js";
import { Details } from "./details.js";
import { CityMap } from "./map.js";
import { byId, Controls, DataChoice, followMessages, Layers } from "./panel.js";
import { listProblems } from "./problems.js";
import { showTown } from "./town.js";

const EMBEDDED_INTERVAL_MS = 1000;
/** A running game shows a line for every question it is asked. */
const GAME_INTERVAL_MS = 5000;
const ROUNDS_PER_LIFE = 3;

const order = (work: () => Promise<void>) =>
  void reportFailure(async () => {
    await work();
    await showSummary();
  });
const layers = new Layers(byId("layers"), () => map.redraw());
const map = new CityMap(byId<HTMLCanvasElement>("map"), layers);
const controls = new Controls(order);
const details = new Details(order, (selection) => map.mark(selection));
const data = new DataChoice(() => void reportFailure(showLayer));
const tiles = new BuildingTiles();
let picture: Picture = EMPTY_PICTURE;
let landIsStale = true;
/** Somebody built something: what stands in the city is to be read at once. */
let lifeIsStale = true;
let shownBuildIndex = -1;
let shownNetwork = "";
let shownZones = "";

byId("zoom-in").addEventListener("click", () => map.view.zoomIn());
byId("zoom-out").addEventListener("click", () => map.view.zoomOut());
byId("fit").addEventListener("click", () => map.fit());
map.onSelect = (selection) => details.select(selection);

async function showSummary(): Promise<void> {
  const summary = await read<Summary>("/state/summary");
  controls.show(summary);
  lifeIsStale ||= summary.buildIndex !== shownBuildIndex;
  shownBuildIndex = summary.buildIndex;
}

/** Reads what changed, of that what the bridge can tell apart; in front of a game, all of it. */
async function showLife(): Promise<void> {
  lifeIsStale = false;
  const isChanged = await tiles.update();
  const isTold = isChanged !== null;
  const network = isTold ? String(tiles.networkRevision) : `built ${shownBuildIndex}`;
  const zones = isTold ? String(tiles.zoneRevision) : network;
  if (network !== shownNetwork) show({ ...picture, ...(await readSegments()) });
  if (zones !== shownZones) show({ ...picture, ...(await readZones()) });
  [shownNetwork, shownZones] = [network, zones];
  if (isTold) {
    const problems = [...tiles.problems(), ...(await readNetworkProblems())];
    const buildings = isChanged ? tiles.buildings() : picture.buildings;
    show({ ...picture, buildings, buildingTotal: buildings.length, problems });
  } else {
    show({ ...picture, ...(await readBuildings()) });
  }
  listProblems(byId("problems"), picture.problems);
}

async function showLand(): Promise<void> {
  landIsStale = false;
  show({ ...picture, ...(await readLand()) });
}

async function showLayer(): Promise<void> {
  const { chosen } = data;
  const layer = chosen === "" ? null : await read<LayerData>(`/state/layer?layer=${chosen}`);
  if (chosen === data.chosen) show({ ...picture, layer });
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
  await showLife();
  map.fit();
  await showTown();
  await showLand();
  data.offer((await readIfOffered<LayerData>("/state/layer?limit=0"))?.layers ?? null);
}

async function follow(round: number): Promise<void> {
  await showSummary();
  if (lifeIsStale || round % ROUNDS_PER_LIFE === 0) {
    await showLife();
    if (data.chosen !== "") await showLayer();
    await showTown();
  }
  if (landIsStale) await showLand();
}

async function run(): Promise<void> {
  const health = await read<Health>("/health");
  const isEmbedded = health.mode === "embedded";
  if (isEmbedded) {
    followMessages(
      byId("feed"),
      () => {
        lifeIsStale = true;
      },
      () => {
        lifeIsStale = true;
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
