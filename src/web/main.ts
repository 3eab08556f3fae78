/** The city page: polls the bridge and shows the city. */
import {
  BuildingTiles,
  type CityData,
  EMPTY_CITY_DATA,
  type Health,
  type LayerData,
  omissionNotice,
  type Place,
  type ProblemRow,
  read,
  readBuildings,
  readCityNetworkProblems,
  readOrNull,
  readSegments,
  readTerrain,
  readTraffic,
  readZones,
  type Summary,
} from "./api.js";
import { BuildTools } from "./build.js";
import { darknessAt } from "./colors.js";
import { DetailsPanel } from "./details.js";
import { CityMap } from "./map.js";
import { byId, Controls, DataLayerMenu, LayerCheckboxes, showLog } from "./panel.js";
import { listProblems } from "./problems.js";
import { showTown } from "./town.js";

const EMBEDDED_INTERVAL_MS = 1000;
/** Polling interval for a running game. It is longer because the game logs a line for every request. */
const GAME_INTERVAL_MS = 5000;
const ROUNDS_PER_CITY_READ = 3;

const runCommand = (work: () => Promise<void>) =>
  void reportFailure(async () => {
    await work();
    await showSummary();
  });
const layers = new LayerCheckboxes(byId("layers"), () => map.redraw());
const map = new CityMap(byId<HTMLCanvasElement>("map"), layers);
const controls = new Controls(runCommand);
const details = new DetailsPanel(runCommand, (selection) => map.mark(selection));
const data = new DataLayerMenu(() => void reportFailure(showLayer));
const tiles = new BuildingTiles();
let picture: CityData = EMPTY_CITY_DATA;
let landIsStale = true;
/** True if the city must be read again, because something was built. */
let cityIsStale = true;
let shownBuildIndex = -1;
let shownNetwork = "";
let shownZones = "";

byId("zoom-in").addEventListener("click", () => map.view.zoomIn());
byId("zoom-out").addEventListener("click", () => map.view.zoomOut());
byId("fit").addEventListener("click", () => map.fit());
const tools = new BuildTools(
  () => map.mark(details.selection),
  () => void reportFailure(showZones),
);
map.sketch = tools.sketch;
map.onPlace = (place) => tools.place(place);
map.view.onHover = (place) => tools.hover(place);
map.onSelect = (selection) => details.select(selection);

async function showSummary(): Promise<void> {
  const summary = await read<Summary>("/state/summary");
  controls.show(summary);
  const { paused, selectedSpeed } = summary.simulation;
  map.setTime(darknessAt(summary.gameTime), paused ? 0 : selectedSpeed);
  cityIsStale ||= summary.buildIndex !== shownBuildIndex;
  shownBuildIndex = summary.buildIndex;
}

/**
 * Shows networks, zones, buildings and problems. If the bridge has map tiles, reads only changed data. If
 * not, reads all buildings every time, and networks and zones only after something was built.
 */
async function showCity(): Promise<void> {
  cityIsStale = false;
  const isChanged = await tiles.update();
  const hasTiles = isChanged !== null;
  const network = hasTiles ? String(tiles.networkRevision) : `built ${shownBuildIndex}`;
  const zones = hasTiles ? String(tiles.zoneRevision) : network;
  if (network !== shownNetwork) show({ ...picture, ...(await readSegments()) });
  if (zones !== shownZones) await showZones();
  [shownNetwork, shownZones] = [network, zones];
  if (hasTiles) {
    const problems = [...tiles.problems(), ...(await readCityNetworkProblems())];
    const buildings = isChanged ? tiles.buildings() : picture.buildings;
    show({ ...picture, buildings, buildingTotal: buildings.length, problems });
  } else {
    show({ ...picture, ...(await readBuildings()) });
  }
  listProblems(byId("problems"), picture.problems, visitProblem);
}

async function showZones(): Promise<void> {
  const { isZoning } = tools;
  const zones = await readZones(isZoning);
  // If another tool was chosen meanwhile, its own read follows.
  if (isZoning === tools.isZoning) show({ ...picture, ...zones });
}

/** Moves the map to a problem and selects the entity there. */
function visitProblem({ entityType, id, position }: ProblemRow): void {
  map.view.goTo(position);
  if (entityType === "building") details.select({ kind: "building", id });
  else if (entityType === "netSegment") details.select({ kind: "segment", id });
}

function visit(place: Place): void {
  map.view.goTo(place);
  map.pick(place);
}

/** Middle of the first road whose name the text contains. */
function placeNamedIn(text: string): Place | undefined {
  const road = picture.segments.find(({ name }) => name && text.includes(name));
  return road && { x: (road.start.x + road.end.x) / 2, z: (road.start.z + road.end.z) / 2 };
}

async function showTraffic(): Promise<void> {
  if (map.showsCars) show({ ...picture, ...(await readTraffic()) });
}

async function showLand(): Promise<void> {
  landIsStale = false;
  show({ ...picture, ...(await readTerrain()) });
}

async function showLayer(): Promise<void> {
  const { chosen } = data;
  const layer = chosen === "" ? null : await read<LayerData>(`/state/layer?layer=${chosen}`);
  if (chosen === data.chosen) show({ ...picture, layer });
}

function show(next: CityData): void {
  picture = next;
  layers.offer("land", picture.terrain !== null);
  layers.offer("zones", picture.zoneBlocks !== null);
  map.show(picture);
}

/** Runs `work`. If `work` fails, shows its error over the map until a later call succeeds. */
async function reportFailure(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    byId("status").textContent = omissionNotice(picture);
    return true;
  } catch (error) {
    byId("status").textContent = inWords(error);
    return false;
  }
}

/** Browsers report an unreachable server as a TypeError without a reason. */
function inWords(error: unknown): string {
  if (error instanceof TypeError)
    return "The city does not answer. It may be stopped or restarting; this page keeps trying.";
  return error instanceof Error ? error.message : String(error);
}

async function start(): Promise<void> {
  await showSummary();
  await showCity();
  map.fit();
  await showTown(placeNamedIn, visit, runCommand);
  await showLand();
  await showTraffic();
  data.offer((await readOrNull<LayerData>("/state/layer?limit=0"))?.layers ?? null);
}

async function follow(round: number): Promise<void> {
  await showSummary();
  if (cityIsStale || round % ROUNDS_PER_CITY_READ === 0) {
    await showCity();
    if (data.chosen !== "") await showLayer();
    await showTraffic();
    await showTown(placeNamedIn, visit, runCommand);
  }
  if (landIsStale) await showLand();
}

async function run(): Promise<void> {
  const health = await read<Health>("/health");
  const isEmbedded = health.mode === "embedded";
  if (isEmbedded) {
    showLog(byId("feed"), {
      onCommand: () => {
        cityIsStale = true;
      },
      onReturn: () => {
        cityIsStale = true;
        landIsStale = true;
      },
      onVisit: visit,
    });
  } else {
    byId("feed").textContent = "A running game shows its messages itself.";
  }
  await tools.offer(isEmbedded);
  const pause = () =>
    new Promise((resolve) => setTimeout(resolve, isEmbedded ? EMBEDDED_INTERVAL_MS : GAME_INTERVAL_MS));
  while (!(await reportFailure(start))) await pause();
  for (let round = 1; ; round++) {
    await pause();
    if (!document.hidden) await reportFailure(() => follow(round));
  }
}

void run();
