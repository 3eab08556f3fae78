/** The bridge's answers, as far as the page shows them, and the picture of the city that the map makes of them. */

export interface Place {
  readonly x: number;
  readonly z: number;
}

export interface Health {
  readonly levelLoaded: boolean;
  /** `embedded` for the city in Carillon's own process. */
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
  readonly service: string;
  readonly start: Place;
  readonly end: Place;
}

export interface BuildingRow {
  readonly id: number;
  readonly service: string;
  readonly active: boolean;
  readonly abandoned?: boolean;
  /** Cells of 8 m. */
  readonly width: number;
  readonly length: number;
  readonly angleDegrees: number;
  readonly position: Place;
}

export interface ProblemRow {
  readonly id: number;
  readonly problemNames: readonly string[];
  readonly position: Place;
}

export interface ZoneBlockRow {
  readonly position: Place;
  readonly angleRadians: number;
  readonly rows: number;
  /** One digit per cell: the zone value of cell (column, row) at `row * 4 + column`. */
  readonly cells: string;
}

/** Samples from the south-west corner, row by row to the north. */
export interface TerrainGrid {
  readonly halfSizeMeters: number;
  readonly spacingMeters: number;
  readonly samplesPerRow: number;
  readonly heights: readonly number[];
  readonly waterDepths: readonly number[];
}

/** The bridge refused; the message is its own. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** `quiet`: what the page reads for itself leaves no line in the overlay of the embedded city. */
export async function read<T>(path: string): Promise<T> {
  const separator = path.includes("?") ? "&" : "?";
  return answerOf<T>(await fetch(`${path}${separator}quiet=true`));
}

/** Null where the bridge, that of a running game for example, has no such endpoint. */
export async function readIfOffered<T>(path: string): Promise<T | null> {
  try {
    return await read<T>(path);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return null;
    throw error;
  }
}

export async function command(name: string, body: object): Promise<void> {
  await answerOf(await fetch(`/commands/${name}`, { method: "POST", body: JSON.stringify(body) }));
}

async function answerOf<T>(response: Response): Promise<T> {
  const answer = await response.json();
  if (!response.ok) throw new Refusal(response.status, String(answer.error ?? response.statusText));
  return answer as T;
}

/** What the map shows, as last read from the bridge. */
export interface Picture {
  readonly terrain: TerrainGrid | null;
  /** Null where the bridge does not tell of cells. */
  readonly zoneBlocks: readonly ZoneBlockRow[] | null;
  readonly segments: readonly SegmentRow[];
  readonly buildings: readonly BuildingRow[];
  /** Those included that are beyond what the bridge can tell. */
  readonly buildingTotal: number;
  readonly problems: readonly ProblemRow[];
  readonly layer: LayerData | null;
}

export const EMPTY_PICTURE: Picture = {
  terrain: null,
  zoneBlocks: null,
  segments: [],
  buildings: [],
  buildingTotal: 0,
  problems: [],
  layer: null,
};

/** Values from 0 to 100 of squares of ground, by their middles. */
export interface LayerData {
  readonly layer: string;
  readonly layers: readonly string[];
  readonly cellMeters: number;
  readonly isGood: boolean;
  readonly cells: readonly { readonly x: number; readonly z: number; readonly value: number }[];
}

/** Never changes while a city is loaded. */
export async function readLand() {
  return { terrain: await readIfOffered<TerrainGrid>("/state/terrain/grid") };
}

const PAGE_ROWS = 5000;

/** All pages; a bridge that knows of none gives its first one again, which ends it. */
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

export async function readZones() {
  const zones = await readIfOffered<{ blocks: ZoneBlockRow[] }>("/state/zone-blocks");
  return { zoneBlocks: zones?.blocks ?? null };
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
];

interface TilesAnswer {
  readonly key: string;
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

/** Everything that stands in the city, kept up to date by reading only what changed. */
export class BuildingTiles {
  #key = "";
  #revision = 0;
  readonly #tiles = new Map<string, readonly TileRow[]>();
  networkRevision = -1;
  zoneRevision = -1;

  /** Whether anything changed; null where the bridge does not tell of tiles. */
  async update(): Promise<boolean | null> {
    let isChanged = false;
    for (let isComplete = false; !isComplete; ) {
      const path = `/state/map-tiles?key=${this.#key}&since=${this.#revision}`;
      const answer = await readIfOffered<TilesAnswer>(path);
      if (!answer) return null;
      if (answer.key !== this.#key) this.#tiles.clear();
      for (const { column, row, buildings } of answer.tiles) this.#tiles.set(`${column}:${row}`, buildings);
      isChanged ||= answer.tiles.length > 0 || answer.key !== this.#key;
      isComplete = answer.complete;
      this.#key = answer.key;
      this.#revision = answer.revision;
      this.networkRevision = answer.networkRevision;
      this.zoneRevision = answer.zoneRevision;
    }
    return isChanged;
  }

  buildings(): BuildingRow[] {
    return this.#rows().map(([id, x, z, angleDegrees, width, length, service, state]) => {
      const active = state === "active";
      return {
        id,
        service,
        active,
        abandoned: state === "ruin",
        width,
        length,
        angleDegrees,
        position: { x, z },
      };
    });
  }

  problems(): ProblemRow[] {
    return this.#rows()
      .filter((row) => row[8] !== "" || row[7] === "ruin")
      .map(([id, x, z, , , , , state, problems]) => {
        const names = problems === "" ? [] : problems.split(", ");
        return { id, problemNames: state === "ruin" ? [...names, "Abandoned"] : names, position: { x, z } };
      });
  }

  #rows(): TileRow[] {
    return [...this.#tiles.values()].flat();
  }
}

/** Problems of nodes and segments, which the tiles do not tell of. */
export async function readNetworkProblems(): Promise<ProblemRow[]> {
  const answers = ["netNode", "netSegment"].map((type) =>
    read<{ problems: ProblemRow[] }>(`/state/problems?limit=1000&entityType=${type}`),
  );
  return (await Promise.all(answers)).flatMap(({ problems }) => problems);
}

/** The list of facilities leaves these out unless asked for each. */
const OTHER_SERVICES = ["Beautification", "Monument", "PublicTransport"];

/** Buildings of a bridge that has no tiles: as many as one answer of each list holds. */
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

/** What of the city the map lacks, or nothing. */
export function omission({ buildings, buildingTotal }: Picture): string {
  if (buildings.length >= buildingTotal) return "";
  return `The map shows ${buildings.length} of ${buildingTotal} buildings.`;
}

export interface Chirp {
  readonly index: number;
  readonly senderName: string;
  readonly text: string;
}

export interface Sample {
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
}
