/** The endpoints of a game inside this process. */
import { type RequestHandler, type Response, Router } from "express";
import { capture } from "./capture/capture.js";
import { batch } from "./commands/batch.js";
import { buildNetwork, buildRoad } from "./commands/build-network.js";
import {
  bulldoze,
  disableBlockedAssets,
  moveBuilding,
  placeBuilding,
  setBuildingActive,
  setBuildingEmptying,
} from "./commands/buildings.js";
import {
  buildGrid,
  buildNeighborhood,
  bulldozeArea,
  connect,
  DEFAULT_SNAP_METERS,
  DEFAULT_SPACING_METERS,
} from "./commands/composites.js";
import { save, setSimulationSpeed, setTaxRate, takeLoan, unlockArea } from "./commands/rules.js";
import { repairZoneClusters, repairZonesToGrowables, setZone } from "./commands/zones.js";
import type { City, Game } from "./game.js";
import { showMetrics } from "./metrics.js";
import { type Overlay, showOverlay, streamOverlay } from "./overlay.js";
import { type CommandRoute, type ReadRoute, runCommand } from "./route.js";
import { buildingAnomalies, roadAnomalies, zoneAnomalies } from "./state/anomalies.js";
import { facilities } from "./state/buildings.js";
import { growables } from "./state/growables.js";
import { areas, coverage, layer, terrain, terrainGrid, zoneBlocks, zones } from "./state/land.js";
import { mapTiles } from "./state/map-tiles.js";
import { externalConnections, networks } from "./state/networks.js";
import { budget, buildingInFull, segmentInFull, statistics, utilities } from "./state/planning.js";
import { buildingPrefabs, networkPrefabs, roadPrefabs } from "./state/prefabs.js";
import { problems } from "./state/problems.js";
import { chirps, demand, economy, saves, summary } from "./state/summary.js";
import { traffic } from "./state/traffic.js";
import {
  BridgeError,
  type JsonObject,
  sendBytes,
  sendJson,
  sendJsonPieces,
  writeJsonPieces,
} from "./wire/answers.js";
import { type Body, parseBody, Query } from "./wire/requests.js";

/** What clients know the bridge by. */
export const BRIDGE_NAME = "Skylines Agent Bridge";

/** What can be read of a loaded city. */
export const READ_ROUTES: readonly ReadRoute[] = [
  summary,
  demand,
  chirps,
  zones,
  zoneBlocks,
  terrain,
  terrainGrid,
  growables,
  roadPrefabs,
  networkPrefabs,
  buildingPrefabs,
  problems,
  economy,
  budget,
  statistics,
  utilities,
  areas,
  coverage,
  layer,
  mapTiles,
  traffic,
  facilities,
  networks,
  roadAnomalies,
  externalConnections,
  buildingAnomalies,
  zoneAnomalies,
  saves,
];

/** What can be read of one thing in a loaded city. */
const ENTITY_ROUTES: readonly ReadRoute[] = [buildingInFull, segmentInFull];

/** What can be asked of a loaded city. */
export const COMMAND_ROUTES: readonly CommandRoute[] = [
  buildNetwork,
  buildRoad,
  setZone,
  repairZonesToGrowables,
  repairZoneClusters,
  placeBuilding,
  moveBuilding,
  setBuildingActive,
  setBuildingEmptying,
  disableBlockedAssets,
  bulldoze,
  save,
  setSimulationSpeed,
  setTaxRate,
  takeLoan,
  unlockArea,
  buildGrid,
  connect,
  buildNeighborhood,
  bulldozeArea,
  batch,
];

/** @param closing ends what would otherwise stay open */
export function embeddedRoutes(game: Game, overlay: Overlay, closing: AbortSignal): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get("/health", health(game));
  router.get("/metrics", showMetrics(game));
  router.get("/overlay", showOverlay(overlay));
  router.get("/overlay/events", streamOverlay(overlay, closing));
  for (const { path, label, read } of [...READ_ROUTES, ...ENTITY_ROUTES]) {
    router.get(path, async (request, response) => {
      const city = loadedCity(game);
      const id = request.params.id as string | undefined;
      if (id !== undefined && !ENTITY_ID.test(id)) throw new BridgeError(404, "Not found");
      const query = new Query(request.url);
      const line = () => (id === undefined ? label : `${label} ${id}`);
      const work = () => read({ game, city, query, id: Number(id) });
      await answer(response, overlayOf(query, overlay), line, work);
    });
  }
  router.get("/capture", async (request, response) => {
    const city = loadedCity(game);
    const query = new Query(request.url);
    const work = () => capture(city, query);
    const { png, mode, distinctColors } = await noted(overlayOf(query, overlay), () => "Capture map", work);
    response.set({ "X-Bridge-Info-Mode": mode, "X-Bridge-Distinct-Colors": String(distinctColors) });
    sendBytes(response, 200, "image/png", png);
  });
  for (const command of COMMAND_ROUTES) {
    const { path, label } = command;
    router.post(path, async (request, response) => {
      const city = loadedCity(game);
      let body: Body = {};
      const work = async () => {
        body = parseBody(request.body);
        await city.settled();
        return runCommand(command, city, body);
      };
      await answer(response, overlay, () => label(body), work);
    });
  }
  return router;
}

const ENTITY_ID = /^[1-9]\d{0,8}$/;

/** Where a read leaves its line; nowhere when it asks for quiet. */
function overlayOf(query: Query, overlay: Overlay): Overlay | null {
  return query.flag("quiet", false) ? null : overlay;
}

/** What clients of later public bridges ask for before they use it. */
const CAPABILITIES = ["composite-commands", "node-snapping", "idempotent-ops", "capture"];

/** GET /health: needs no city and leaves no line. */
function health(game: Game): RequestHandler {
  return (request, response) => {
    sendJson(response, 200, {
      ok: true,
      mod: BRIDGE_NAME,
      levelLoaded: game.city !== null,
      port: request.socket.localPort ?? 0,
      mode: "embedded",
      capabilities: CAPABILITIES,
      defaultSpacing: DEFAULT_SPACING_METERS,
      snapDistance: DEFAULT_SNAP_METERS,
    });
  };
}

function loadedCity({ city }: Game): City {
  if (!city) throw new BridgeError(409, "No city is loaded.");
  return city;
}

async function answer(
  response: Response,
  overlay: Overlay | null,
  line: () => string,
  work: () => JsonObject | Promise<JsonObject>,
): Promise<void> {
  sendJsonPieces(response, 200, await noted(overlay, line, async () => writeJsonPieces(await work())));
}

/** Does the work, and notes the outcome in the overlay if there is one to note it in. */
async function noted<T>(overlay: Overlay | null, line: () => string, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    overlay?.notify(`API OK: ${line()}`);
    return result;
  } catch (error) {
    overlay?.notify(`API FAIL: ${line()}`);
    throw error;
  }
}
