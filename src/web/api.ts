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
  readonly displayName: string;
  readonly service: string;
  readonly active: boolean;
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
export class Refusal extends Error {
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
  /** Those included that are beyond what one answer of the bridge can hold. */
  readonly segmentTotal: number;
  readonly growables: readonly BuildingRow[];
  readonly growableTotal: number;
  readonly facilities: readonly BuildingRow[];
  readonly problems: readonly ProblemRow[];
}

export const EMPTY_PICTURE: Picture = {
  terrain: null,
  zoneBlocks: null,
  segments: [],
  segmentTotal: 0,
  growables: [],
  growableTotal: 0,
  facilities: [],
  problems: [],
};

/** The list of facilities leaves these out unless asked for each. */
const OTHER_SERVICES = ["Beautification", "Monument", "PublicTransport"];

/** Never changes while a city is loaded. */
export async function readLand() {
  return { terrain: await readIfOffered<TerrainGrid>("/state/terrain/grid") };
}

/** Changes only when somebody builds or zones. */
export async function readPlan() {
  const { segments, total } = await read<{ segments: SegmentRow[]; total: number }>(
    "/state/networks?limit=5000",
  );
  const zones = await readIfOffered<{ blocks: ZoneBlockRow[] }>("/state/zone-blocks");
  return { segments, segmentTotal: total, zoneBlocks: zones?.blocks ?? null };
}

/** Changes by itself. */
export async function readLife() {
  const { growables, total } = await read<{ growables: BuildingRow[]; total: number }>(
    "/state/growables?limit=5000",
  );
  const facilities: BuildingRow[] = [];
  for (const service of ["", ...OTHER_SERVICES]) {
    const answer = await read<{ facilities: BuildingRow[] }>(
      `/state/facilities?limit=5000&service=${service}`,
    );
    facilities.push(...answer.facilities);
  }
  const { problems } = await read<{ problems: ProblemRow[] }>("/state/problems?limit=1000");
  return { growables, growableTotal: total, facilities, problems };
}

/** What of the city the map lacks, or nothing. */
export function omission({ segments, segmentTotal, growables, growableTotal }: Picture): string {
  const parts = [
    { shown: segments.length, total: segmentTotal, name: "roads and lines" },
    { shown: growables.length, total: growableTotal, name: "buildings" },
  ];
  return parts
    .filter(({ shown, total }) => shown < total)
    .map(({ shown, total, name }) => `The map shows ${shown} of ${total} ${name}.`)
    .join(" ");
}
