/** The city page: polls the bridge and shows the city. */
import { showAdvice } from "./advice.js";
import {
  type BudgetAnswer,
  BuildingTiles,
  type CityData,
  EMPTY_CITY_DATA,
  errorInWords,
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
import { closeTreasury, forgetSaves, offerCityMenu, offerTreasury } from "./city-menu.js";
import { darknessAt } from "./colors.js";
import { DetailsPanel } from "./details.js";
import { isStreet } from "./drawing.js";
import { CityMap } from "./map.js";
import { byId, Controls, DataLayerMenu, LayerCheckboxes, showLog } from "./panel.js";
import { listProblems } from "./problems.js";
import { forgetTown, showTown } from "./town.js";

const EMBEDDED_INTERVAL_MS = 1000;
/** Polling interval for a running game. It is longer because the game logs a line for every request. */
const GAME_INTERVAL_MS = 5000;
const ROUNDS_PER_CITY_READ = 3;
/** Advice is costly in a large city. The first steps of a city without citizens are read with the city. */
const ROUNDS_PER_ADVICE = 5;

/** Why the last command was refused. It stays for a while, because the reads of every second succeed. */
let refusal = "";
const REFUSAL_MS = 15_000;
let refusalTimer: number | undefined;

function runCommand(work: () => Promise<void>): void {
  say("");
  const done = work().then(() => {
    cityIsStale = true;
    adviceIsStale = true;
    return showSummary();
  });
  done.catch((error: unknown) => say(errorInWords(error)));
}

function say(words: string): void {
  refusal = words;
  clearTimeout(refusalTimer);
  if (words !== "") refusalTimer = setTimeout(() => say(""), REFUSAL_MS);
  showStatus();
}

/** Why the last read failed; "" if it did not. */
let outage = "";

function showStatus(): void {
  byId("status").textContent = refusal || outage || omissionNotice(picture);
}

const onChange = () => runCommand(async () => {});
const layers = new LayerCheckboxes(byId("layers"), () => map.redraw());
const map = new CityMap(byId<HTMLCanvasElement>("map"), layers);
const controls = new Controls(runCommand);
const tools = new BuildTools(map, () => void reportFailure(showZones));
const details = new DetailsPanel(tools, runCommand, (selection) => map.mark(selection));
const data = new DataLayerMenu(() => void reportFailure(showLayer));
const tiles = new BuildingTiles();
let picture: CityData = EMPTY_CITY_DATA;
let budget: BudgetAnswer | null = null;
/** Whether the city runs in the bridge, and not in a game. */
let isEmbedded = true;
let landIsStale = true;
let adviceIsStale = true;
/** True if the city must be read again, because something was built. */
let cityIsStale = true;
/** Key and id of the city that is shown. */
let shownCity = { key: "", id: null as string | null };
let shownBuildIndex = -1;
let shownNetwork = "";
let shownZones = "";

byId("zoom-in").addEventListener("click", () => map.view.zoomIn());
byId("zoom-out").addEventListener("click", () => map.view.zoomOut());
byId("fit").addEventListener("click", () => map.fit());
map.onSelect = (selection) => details.select(selection);

async function showSummary(): Promise<void> {
  const turn = nextTurn();
  const [summary, money] = await Promise.all([
    read<Summary>("/state/summary"),
    readOrNull<BudgetAnswer>("/state/budget?history=false"),
  ]);
  if (!isNewest("summary", turn)) return;
  budget = money;
  controls.show(summary);
  controls.showMoney(budget);
  adviceIsStale ||= summary.citizens.count === 0;
  const { paused, selectedSpeed } = summary.simulation;
  map.setTime(darknessAt(summary.gameTime), paused ? 0 : selectedSpeed);
  cityIsStale ||= summary.buildIndex !== shownBuildIndex;
  shownBuildIndex = summary.buildIndex;
}

/**
 * Shows networks, zones, buildings and problems. If the bridge has map tiles, reads only changed data. If
 * not, reads all buildings every time, and networks and zones only after something was built.
 * @param summary resolves when the revision of what was built is known
 */
async function showCity(summary: Promise<void> = Promise.resolve()): Promise<void> {
  cityIsStale = false;
  const isChanged = await tiles.update();
  const hasTiles = isChanged !== null;
  if (!hasTiles) await summary;
  const { key, cityId: id } = tiles;
  const isNew = shownCity.key !== "" && shownCity.key !== key;
  const isOther = isNew && (id === null || id !== shownCity.id);
  if (isNew) [shownNetwork, shownZones] = ["", ""];
  if (isOther) forgetCity();
  else if (isNew) tools.forgetUndo();
  shownCity = { key, id };
  const network = hasTiles ? String(tiles.networkRevision) : `built ${shownBuildIndex}`;
  const zones = hasTiles ? String(tiles.zoneRevision) : network;
  const hadStreets = hasStreets();
  await Promise.all([
    network !== shownNetwork && refresh("segments", readSegments),
    zones !== shownZones && showZones(),
    refresh("buildings", async () => {
      if (!hasTiles) return readBuildings();
      const problems = [...tiles.problems(), ...(await readCityNetworkProblems())];
      const buildings = isChanged ? tiles.buildings() : picture.buildings;
      return { buildings, buildingTotal: buildings.length, problems };
    }),
  ]);
  [shownNetwork, shownZones] = [network, zones];
  listProblems(byId("problems"), picture.problems, visitProblem);
  // Who draws the first street goes on drawing where it is.
  const isLaid = hasStreets() && !hadStreets && !tools.isChosen;
  if (isOther || isLaid) map.fit();
}

function hasStreets(): boolean {
  return picture.segments.some(isStreet);
}

/** Another city was loaded: nothing of the former one stays on the page. */
function forgetCity(): void {
  landIsStale = true;
  adviceIsStale = true;
  details.close();
  tools.reset();
  tools.report("Another city is loaded.");
  closeTreasury();
  forgetTown();
  forgetSaves();
  show(EMPTY_CITY_DATA);
}

function showZones(): Promise<void> {
  return refresh("zones", () => readZones(tools.isZoning));
}

let turns = 0;
/** The latest read of each kind that is shown. */
const shownTurns = new Map<string, number>();
const nextTurn = () => ++turns;

/** Whether no later read of this kind has been shown yet; notes that this one is. */
function isNewest(kind: string, turn: number): boolean {
  if (turn < (shownTurns.get(kind) ?? 0)) return false;
  shownTurns.set(kind, turn);
  return true;
}

/** Reads and shows a part of the picture. A slow answer never replaces a newer one. */
async function refresh(kind: string, readPart: () => Promise<Partial<CityData>>): Promise<void> {
  const turn = nextTurn();
  const part = await readPart();
  if (isNewest(kind, turn)) show({ ...picture, ...part });
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
  if (map.showsCars) await refresh("traffic", readTraffic);
}

async function showLand(): Promise<void> {
  landIsStale = false;
  await refresh("land", readTerrain);
}

async function showLayer(): Promise<void> {
  const { chosen } = data;
  await refresh("layer", async () => {
    const layer = chosen === "" ? null : await read<LayerData>(`/state/layer?layer=${chosen}`);
    if (layer) data.explain(layer);
    return { layer };
  });
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
    if (outage !== "") tools.resume();
    outage = "";
  } catch (error) {
    outage = errorInWords(error);
  }
  showStatus();
  return outage === "";
}

/** Shows what a user needs first, in one round of requests. index.html preloads most of them. */
async function start(): Promise<void> {
  const summary = showSummary();
  await Promise.all([summary, showCity(summary), showAdvice(tools, visit, runCommand)]);
  map.fit();
}

/** Shows what can wait: it is much larger. */
async function showRest(): Promise<void> {
  await Promise.all([
    showLand(),
    tools.load(),
    showTown(budget, placeNamedIn, visit, runCommand),
    showTraffic(),
    readOrNull<LayerData>("/state/layer?limit=0").then((layer) => data.offer(layer?.layers ?? null)),
  ]);
  // The labels of the advice are known only now.
  await showAdvice(tools, visit, runCommand);
}

async function follow(round: number): Promise<void> {
  await showSummary();
  if (cityIsStale || round % ROUNDS_PER_CITY_READ === 0) {
    await showCity();
    if (data.chosen !== "") await showLayer();
    await showTraffic();
    await showTown(budget, placeNamedIn, visit, runCommand);
    await details.refresh();
  }
  if (adviceIsStale || round % ROUNDS_PER_ADVICE === 0) {
    adviceIsStale = false;
    await showAdvice(tools, visit, runCommand);
  }
  if (landIsStale) await showLand();
}

async function greet(): Promise<void> {
  const health = await read<Health>("/health");
  isEmbedded = health.mode === "embedded";
  tools.isEmbedded = isEmbedded;
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
  offerCityMenu(isEmbedded, onChange);
}

const pause = () =>
  new Promise((resolve) => setTimeout(resolve, isEmbedded ? EMBEDDED_INTERVAL_MS : GAME_INTERVAL_MS));

/** Repeats `work` until the bridge answers. */
async function insist(work: () => Promise<void>): Promise<void> {
  while (!(await reportFailure(work))) await pause();
}

async function run(): Promise<void> {
  offerTreasury(onChange);
  await Promise.all([insist(greet), insist(start)]);
  void insist(showRest);
  for (let round = 1; ; round++) {
    await pause();
    if (!document.hidden) await reportFailure(() => follow(round));
  }
}

void run();
