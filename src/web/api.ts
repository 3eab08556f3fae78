/** Requests of the page to the bridge, their responses, and the city data that the map draws. */
import type { GroundPoint as Place } from "../city/geometry.js";
import { withTimeLimit } from "../system/time-limit.js";

export type { Place };

/** What the user has chosen on the map. */
export type Selection =
  | { readonly kind: "building" | "segment"; readonly id: number }
  | { readonly kind: "ground"; readonly x: number; readonly z: number };

export interface Health {
  readonly levelLoaded: boolean;
  /** `embedded` if the city runs in the process of Carillon. */
  readonly mode?: string;
}

export interface Summary {
  readonly gameTime: string;
  readonly buildIndex: number;
  readonly simulation: { readonly paused: boolean; readonly selectedSpeed: number };
  readonly citizens: { readonly count: number };
  readonly demand: Readonly<Record<"residential" | "commercial" | "workplace", number>>;
}

export interface SegmentRow {
  readonly id: number;
  readonly prefab: string;
  /** Street name; may be empty. */
  readonly name: string;
  readonly service: string;
  readonly start: Place;
  readonly end: Place;
}

export interface BuildingRow {
  readonly id: number;
  readonly service: string;
  readonly subService: string;
  /** `Level1` to `Level5`; `None` for a service building. */
  readonly level: string;
  readonly active: boolean;
  readonly abandoned?: boolean;
  /** Width and length in cells of 8 m. */
  readonly width: number;
  readonly length: number;
  readonly angleDegrees: number;
  readonly position: Place;
}

export interface ProblemRow {
  readonly entityType: "building" | "netNode" | "netSegment";
  readonly id: number;
  readonly problemNames: readonly string[];
  readonly position: Place;
}

export interface ZoneBlockRow {
  readonly position: Place;
  readonly angleRadians: number;
  readonly rows: number;
  /** Zone values, one digit per cell. The cell (column, row) is at the index `row * 4 + column`. */
  readonly cells: string;
  /** A 1 for each cell that can be built on, in the order of `cells`. */
  readonly usable?: string;
}

/** Terrain samples. They start in the south-west corner and run row by row to the north. */
export interface TerrainGrid {
  readonly halfSizeMeters: number;
  readonly spacingMeters: number;
  readonly samplesPerRow: number;
  readonly heights: readonly number[];
  readonly waterDepths: readonly number[];
}

/** Error response of the bridge, with the message that it contains. */
class BridgeError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Without a response for this long, requests fail, so that the page does not wait for ever. Large cities load slowly. */
const READ_LIMIT_MS = 30_000;
const COMMAND_LIMIT_MS = 60_000;

/** Sends a GET request to the bridge with `quiet`, so that its overlay does not show the request. */
export async function read<T>(path: string): Promise<T> {
  const address = `${path}${path.includes("?") ? "&" : "?"}quiet=true`;
  return request<T>(READ_LIMIT_MS, address);
}

/** @throws BridgeError if the bridge refuses, TypeError if it does not answer */
async function request<T>(ms: number, address: string, init: RequestInit = {}): Promise<T> {
  const limit = { ms, error: () => new TypeError("no response in time") };
  return withTimeLimit(limit, async (signal) => answerOf<T>(await fetch(address, { ...init, signal })));
}

/** Paths that the bridge does not have: a running game has fewer than the embedded city. They are not asked for again. */
const missing = new Set<string>();

/** Null if the bridge has no such endpoint. */
export async function readOrNull<T>(path: string): Promise<T | null> {
  const [endpoint = ""] = path.split("?");
  if (missing.has(endpoint)) return null;
  const answer = await readEntity<T>(path);
  if (answer === null) missing.add(endpoint);
  return answer;
}

/** Null if there is nothing at the path now. */
export async function readEntity<T>(path: string): Promise<T | null> {
  try {
    return await read<T>(path);
  } catch (error) {
    if (error instanceof BridgeError && error.status === 404) return null;
    throw error;
  }
}

/** An error for the user. Browsers report an unreachable server as a TypeError without a reason. */
export function errorInWords(error: unknown): string {
  if (error instanceof TypeError)
    return "The city does not answer. It may be stopped or restarting; this page keeps trying.";
  return error instanceof Error ? error.message : String(error);
}

export interface CommandReply {
  readonly message: string;
  readonly warnings?: readonly string[];
  readonly cost?: number;
  readonly constructionCost?: number;
  readonly segmentId?: number;
  /** Segments of a road that was built in pieces. */
  readonly segmentIds?: readonly number[];
  readonly buildingId?: number;
  readonly changedCells?: number;
  readonly matchingBlocks?: number;
  readonly refund?: number;
  /** Name of a save, which leaves out characters that files cannot have. */
  readonly saveName?: string;
  readonly suggestions?: readonly { readonly position: Place; readonly angleDegrees: number }[];
}

export function sendCommand(name: string, body: object): Promise<CommandReply> {
  const init = { method: "POST", body: JSON.stringify(body) };
  return request<CommandReply>(COMMAND_LIMIT_MS, `/commands/${name}`, init);
}

async function answerOf<T>(response: Response): Promise<T> {
  const answer = await response.json().catch((error: Error) => {
    if (error.name === "AbortError") throw error;
    // Such as the error page of a proxy, while the bridge restarts.
    throw new TypeError("the response is not JSON");
  });
  if (!response.ok) throw new BridgeError(response.status, String(answer.error ?? response.statusText));
  return answer as T;
}

/** City data as last read from the bridge. */
export interface CityData {
  readonly terrain: TerrainGrid | null;
  /** Zone blocks with their cells; null if the bridge does not list zone cells. */
  readonly zoneBlocks: readonly ZoneBlockRow[] | null;
  readonly segments: readonly SegmentRow[];
  readonly buildings: readonly BuildingRow[];
  /** Number of all buildings, including those beyond the bridge's list limit. */
  readonly buildingTotal: number;
  readonly problems: readonly ProblemRow[];
  readonly layer: LayerData | null;
  readonly traffic: readonly TrafficRow[];
}

/** Traffic of a road, both directions added together. */
export interface TrafficRow {
  readonly segmentId: number;
  readonly volumePerHour: number;
  readonly speedKmh: number;
}

export const EMPTY_CITY_DATA: CityData = {
  terrain: null,
  zoneBlocks: null,
  segments: [],
  buildings: [],
  buildingTotal: 0,
  problems: [],
  layer: null,
  traffic: [],
};

/** A value from 0 to 100 for each square of ground; `x` and `z` are the centre of the square. */
export interface LayerData {
  readonly layer: string;
  readonly layers: readonly string[];
  readonly cellMeters: number;
  readonly isGood: boolean;
  readonly cells: readonly { readonly x: number; readonly z: number; readonly value: number }[];
}

/** Reads the terrain, which does not change while a city is loaded. */
export async function readTerrain() {
  return { terrain: await readOrNull<TerrainGrid>("/state/terrain/grid") };
}

const PAGE_ROWS = 5000;

/** Reads all segments, page by page. A bridge without paging sends the same page again; then the loop ends. */
export async function readSegments(): Promise<{ segments: SegmentRow[] }> {
  const all = new Map<number, SegmentRow>();
  for (let offset = 0; ; offset += PAGE_ROWS) {
    const path = `/state/networks?limit=${PAGE_ROWS}&offset=${offset}`;
    const { segments, total } = await read<{ segments: SegmentRow[]; total: number }>(path);
    const before = all.size;
    for (const segment of segments) all.set(segment.id, segment);
    if (all.size >= total || all.size === before) return { segments: [...all.values()] };
  }
}

/** @param withUsable whether to read which cells can be built on */
export async function readZones(withUsable: boolean) {
  const path = `/state/zone-blocks${withUsable ? "?usable=true" : ""}`;
  const zones = await readOrNull<{ blocks: ZoneBlockRow[] }>(path);
  return { zoneBlocks: zones?.blocks ?? null };
}

const MAX_TRAFFIC_ROADS = 2000;

/** Reads the roads with the most traffic. The list is empty if the bridge has no traffic counts. */
export async function readTraffic() {
  const answer = await readOrNull<{ segments: TrafficRow[] }>(`/state/traffic?limit=${MAX_TRAFFIC_ROADS}`);
  return { traffic: answer?.segments ?? [] };
}

type TileRow = readonly [
  id: number,
  x: number,
  z: number,
  angleDegrees: number,
  width: number,
  length: number,
  service: string,
  state: "active" | "inactive" | "ruin",
  problems: string,
  subService: string,
  level: string,
];

interface TilesAnswer {
  readonly key: string;
  readonly cityId: string | null;
  readonly revision: number;
  readonly complete: boolean;
  readonly networkRevision: number;
  readonly zoneRevision: number;
  readonly tiles: readonly {
    readonly column: number;
    readonly row: number;
    readonly buildings: readonly TileRow[];
  }[];
}

/** Keeps all buildings by map tile. An update reads only the tiles that changed. */
export class BuildingTiles {
  /** Changes if another city is loaded, or the bridge starts again. */
  #key = "";
  /** Id of the city, which outlasts a restart of the bridge; null if it has none yet. */
  cityId: string | null = null;
  #revision = 0;
  readonly #tiles = new Map<string, readonly TileRow[]>();
  networkRevision = -1;
  zoneRevision = -1;

  /** Reads the tiles that changed. Returns whether there were any; null if the bridge has no tiles. */
  async update(): Promise<boolean | null> {
    let isChanged = false;
    for (let isComplete = false; !isComplete; ) {
      const path = `/state/map-tiles?key=${this.#key}&since=${this.#revision}`;
      const answer = await readOrNull<TilesAnswer>(path);
      if (!answer) return null;
      if (answer.key !== this.#key) this.#tiles.clear();
      for (const { column, row, buildings } of answer.tiles) this.#tiles.set(`${column}:${row}`, buildings);
      isChanged ||= answer.tiles.length > 0 || answer.key !== this.#key;
      isComplete = answer.complete;
      this.#key = answer.key;
      this.cityId = answer.cityId;
      this.#revision = answer.revision;
      this.networkRevision = answer.networkRevision;
      this.zoneRevision = answer.zoneRevision;
    }
    return isChanged;
  }

  get key(): string {
    return this.#key;
  }

  buildings(): BuildingRow[] {
    return this.#rows().map((row) => {
      const [id, x, z, angleDegrees, width, length, service, state, , subService, level] = row;
      const is = { active: state === "active", abandoned: state === "ruin" };
      return { id, service, subService, level, ...is, width, length, angleDegrees, position: { x, z } };
    });
  }

  problems(): ProblemRow[] {
    return this.#rows()
      .filter((row) => row[8] !== "" || row[7] === "ruin")
      .map(([id, x, z, , , , , state, problems]) => {
        const names = problems === "" ? [] : problems.split(", ");
        const problemNames = state === "ruin" ? [...names, "Abandoned"] : names;
        return { entityType: "building", id, problemNames, position: { x, z } };
      });
  }

  #rows(): TileRow[] {
    return [...this.#tiles.values()].flat();
  }
}

/** Reads the problems of network nodes and segments. Map tiles contain only the problems of buildings. */
export async function readCityNetworkProblems(): Promise<ProblemRow[]> {
  const answers = ["netNode", "netSegment"].map((type) =>
    read<{ problems: ProblemRow[] }>(`/state/problems?limit=1000&entityType=${type}`),
  );
  return (await Promise.all(answers)).flatMap(({ problems }) => problems);
}

/** Services that the facility list returns only on request. */
const OTHER_SERVICES = ["Beautification", "Monument", "PublicTransport"];

/** Reads buildings and problems from a bridge without map tiles, whose lists are limited. */
export async function readBuildings() {
  const { growables, total } = await read<{ growables: BuildingRow[]; total: number }>(
    `/state/growables?limit=${PAGE_ROWS}`,
  );
  const facilities: BuildingRow[] = [];
  for (const service of ["", ...OTHER_SERVICES]) {
    const path = `/state/facilities?limit=${PAGE_ROWS}&service=${service}`;
    facilities.push(...(await read<{ facilities: BuildingRow[] }>(path)).facilities);
  }
  const { problems } = await read<{ problems: ProblemRow[] }>("/state/problems?limit=1000");
  const buildings = [...growables, ...facilities];
  return { buildings, buildingTotal: total + facilities.length, problems };
}

/** Says how many of the buildings the map shows; "" if it shows all. */
export function omissionNotice({ buildings, buildingTotal }: CityData): string {
  if (buildings.length >= buildingTotal) return "";
  return `The map shows ${buildings.length} of ${buildingTotal} buildings.`;
}

export interface Chirp {
  readonly index: number;
  readonly senderName: string;
  readonly text: string;
}

export interface StatisticsRow {
  readonly gameTime: string;
  readonly citizens: number;
  readonly happiness: number;
  readonly balance: number;
  readonly income: number;
  readonly expenses: number;
  readonly residentialDemand: number;
  readonly commercialDemand: number;
  readonly workplaceDemand: number;
}

export interface BudgetAnswer {
  readonly unlimited: boolean;
  readonly balance: number;
  readonly income: readonly { readonly name: string; readonly lastWeek: number }[];
  readonly expenses: readonly { readonly name: string; readonly lastWeek: number }[];
  readonly weeklySurplus?: number;
  readonly loans?: readonly {
    readonly lender: string;
    readonly weeklyPayment: number;
    readonly weeksLeft: number;
  }[];
  readonly loanOffers?: readonly {
    readonly lender: string;
    readonly amount: number;
    readonly weeks: number;
    readonly weeklyPayment: number;
  }[];
  readonly bailout?: { readonly amount: number; readonly isOffered: boolean };
  readonly servicesClosedForDebt?: number;
}
