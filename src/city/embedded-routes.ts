/** Endpoints of the embedded city. */

import { createRequire } from "node:module";
import { constants } from "node:zlib";
import compression from "compression";
import { type RequestHandler, Router } from "express";
import { methodNotAllowed } from "../http/guards.js";
import { HttpError } from "../http/http-error.js";
import type { OpenApiDocument } from "../http/openapi.js";
import { DOCS, pageRoutes } from "../http/page.js";
import { mcpRoute } from "../mcp/http.js";
import { capture } from "./capture/capture.js";
import { advance } from "./commands/advance.js";
import { batch } from "./commands/batch.js";
import { buildNeighborhood } from "./commands/build-neighborhood.js";
import { BUILDING_COMMANDS } from "./commands/buildings.js";
import { BULLDOZE_COMMANDS } from "./commands/bulldoze.js";
import { CITY_COMMANDS } from "./commands/city.js";
import { type CommandRoute, requireCity } from "./commands/command.js";
import { buildGrid, DEFAULT_SNAP_METERS, DEFAULT_SPACING_METERS } from "./commands/grid.js";
import { ROAD_COMMANDS } from "./commands/roads.js";
import { SAVE_COMMANDS } from "./commands/saves.js";
import { setTaxRate } from "./commands/set-tax-rate.js";
import { undo } from "./commands/undo.js";
import { ZONE_COMMANDS, ZONE_REPAIRS } from "./commands/zones.js";
import type { GroundPoint } from "./geometry.js";
import { showMetrics } from "./metrics.js";
import { openApiDocument } from "./openapi.js";
import { type Overlay, showOverlay, streamOverlay } from "./overlay.js";
import type { ReadRoute } from "./read-route.js";
import type { EmbeddedGame } from "./simulation/embedded-game.js";
import { advice } from "./views/advice.js";
import { ANOMALY_READS } from "./views/anomalies.js";
import { BUILDING_READS } from "./views/buildings.js";
import { LAND_READS } from "./views/land.js";
import { mapTiles } from "./views/map-tiles.js";
import { NETWORK_READS } from "./views/networks.js";
import { buildingDetails, PLANNING_READS, segmentDetails } from "./views/planning.js";
import { PREFAB_READS } from "./views/prefabs.js";
import { problems } from "./views/problems.js";
import { SUMMARY_READS } from "./views/summary.js";
import { traffic } from "./views/traffic.js";
import { sendBytes, sendJson, sendJsonPieces, writeJsonPieces } from "./wire/answers.js";
import { type Body, groundPoint, parseBody, Query } from "./wire/requests.js";

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

/** Clients identify the bridge by this name. */
export const BRIDGE_NAME = "Skylines Agent Bridge";

/** Read endpoints that need a loaded city. */
export const READ_ROUTES: readonly ReadRoute[] = [
  advice,
  ...ANOMALY_READS,
  ...BUILDING_READS,
  ...LAND_READS,
  mapTiles,
  ...NETWORK_READS,
  ...PLANNING_READS,
  ...PREFAB_READS,
  problems,
  ...SUMMARY_READS,
  traffic,
];

/** Read endpoints of a single building or segment. */
const ENTITY_ROUTES: readonly ReadRoute[] = [buildingDetails, segmentDetails];

export const COMMAND_ROUTES: readonly CommandRoute[] = [
  advance,
  batch,
  buildNeighborhood,
  ...BUILDING_COMMANDS,
  ...BULLDOZE_COMMANDS,
  ...CITY_COMMANDS,
  buildGrid,
  ...ZONE_REPAIRS,
  ...ROAD_COMMANDS,
  ...SAVE_COMMANDS,
  setTaxRate,
  undo,
  ...ZONE_COMMANDS,
];

/** Compresses lists for browsers. Other programs on this machine would only lose time. */
const compressForPages = compression({
  filter: ({ method, headers }, response) =>
    method === "GET" &&
    headers["sec-fetch-site"] !== undefined &&
    String(response.getHeader("Content-Type")).startsWith("application/json"),
  brotli: { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } },
});

const ENTITY_ID = /^[1-9]\d{0,8}$/;

/** @param closing signal that ends event streams */
export function embeddedRoutes(game: EmbeddedGame, overlay: Overlay, closing: AbortSignal): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.use(compressForPages);
  router.get("/health", health(game));
  router.get("/metrics", showMetrics(game));
  router.get("/openapi.json", (_request, response) => {
    documentText ??= Buffer.from(JSON.stringify(cityDocument()));
    sendBytes(response, 200, "application/json; charset=utf-8", documentText);
  });
  router.post("/mcp", mcpRoute("city", cityDocument));
  router.all("/mcp", methodNotAllowed("POST"));
  router.use(pageRoutes(DOCS));
  router.get("/overlay", showOverlay(overlay));
  router.get("/overlay/events", streamOverlay(overlay, closing));
  for (const route of [...READ_ROUTES, ...ENTITY_ROUTES])
    router.get(route.path, answerRead(game, overlay, route));
  router.get("/capture", answerCapture(game, overlay));
  for (const route of COMMAND_ROUTES) router.post(route.path, answerCommand(game, overlay, route));
  return router;
}

function answerRead(game: EmbeddedGame, overlay: Overlay, { label, read }: ReadRoute): RequestHandler {
  return async (request, response) => {
    const world = requireCity(game);
    const id = request.params.id as string | undefined;
    if (id !== undefined && !ENTITY_ID.test(id)) throw new HttpError(404, "Not found");
    const query = new Query(request.url);
    const work = async () => {
      return writeJsonPieces({ ok: true, ...(await read({ game, world, query, id: Number(id) })) });
    };
    const line = id === undefined ? label : `${label} ${id}`;
    sendJsonPieces(response, 200, await withOverlayLine(unlessQuiet(query, overlay), line, work));
  };
}

function answerCapture(game: EmbeddedGame, overlay: Overlay): RequestHandler {
  return async (request, response) => {
    const world = requireCity(game);
    const query = new Query(request.url);
    const work = () => capture(world, query);
    const image = await withOverlayLine(unlessQuiet(query, overlay), "Capture map", work);
    response.set("X-Bridge-Info-Mode", image.mode);
    response.set("X-Bridge-Distinct-Colors", String(image.distinctColors));
    sendBytes(response, 200, "image/png", image.png);
  };
}

function answerCommand(game: EmbeddedGame, overlay: Overlay, command: CommandRoute): RequestHandler {
  return async (request, response) => {
    const world = command.replacesCity ? null : requireCity(game);
    const body = parseLogged(request.body, overlay, command);
    const work = async () => writeJsonPieces(await command.send(game, world, body));
    const pieces = await withOverlayLine(overlay, command.label(body), work, placeOf(body));
    sendJsonPieces(response, 200, pieces);
  };
}

/** Parses a body. Adds a line to the overlay if the body is refused. */
function parseLogged(bytes: Uint8Array, overlay: Overlay, { label }: CommandRoute): Body {
  try {
    return parseBody(bytes);
  } catch (error) {
    overlay.notify(`API FAIL: ${label({})}`);
    throw error;
  }
}

/** Returns the overlay; null for a request with quiet=true. */
function unlessQuiet(query: Query, overlay: Overlay): Overlay | null {
  return query.flag("quiet", false) ? null : overlay;
}

let document: OpenApiDocument | undefined;
let documentText: Buffer | undefined;

/** OpenAPI document of all read and command endpoints, built on the first request. */
function cityDocument(): OpenApiDocument {
  document ??= openApiDocument(version, COMMAND_ROUTES, [...READ_ROUTES, ...ENTITY_ROUTES]);
  return document;
}

/** Features that older versions of the game's bridge lack. Clients check for a feature before they use it. */
const CAPABILITIES = ["composite-commands", "node-snapping", "idempotent-ops", "capture"];

/** GET /health: works without a city and adds no overlay line. */
function health(game: EmbeddedGame): RequestHandler {
  return (request, response) => {
    sendJson(response, 200, {
      ok: true,
      mod: BRIDGE_NAME,
      levelLoaded: game.world !== null,
      port: request.socket.localPort ?? 0,
      mode: "embedded",
      capabilities: CAPABILITIES,
      defaultSpacing: DEFAULT_SPACING_METERS,
      snapDistance: DEFAULT_SNAP_METERS,
    });
  };
}

/** Place on the map where a command acts, for the overlay. The fields have not been validated. */
function placeOf({ position, center, start, from }: Body): GroundPoint | undefined {
  const given = position ?? center ?? start ?? from;
  const found = groundPoint.safeParse(given);
  return given !== undefined && found.success ? found.data : undefined;
}

/** Runs `work` and adds a line about its outcome to the overlay, unless `overlay` is null. */
async function withOverlayLine<T>(
  overlay: Overlay | null,
  line: string,
  work: () => Promise<T>,
  place?: GroundPoint,
): Promise<T> {
  try {
    const result = await work();
    overlay?.notify(`API OK: ${line}`, place);
    return result;
  } catch (error) {
    overlay?.notify(`API FAIL: ${line}`, place);
    throw error;
  }
}
