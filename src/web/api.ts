/** The bridge's answers, as far as the page shows them. */

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
