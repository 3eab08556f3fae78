/** What the map shows, as last read from the bridge, and the reading of it. */
import {
  type BuildingRow,
  type ProblemRow,
  read,
  readIfOffered,
  type SegmentRow,
  type TerrainGrid,
  type ZoneBlockRow,
} from "./api.js";

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
export async function readLand(): Promise<Pick<Picture, "terrain">> {
  return { terrain: await readIfOffered<TerrainGrid>("/state/terrain") };
}

/** Changes only when somebody builds or zones. */
export async function readPlan(): Promise<Pick<Picture, "segments" | "segmentTotal" | "zoneBlocks">> {
  const { segments, total } = await read<{ segments: SegmentRow[]; total: number }>(
    "/state/networks?limit=5000",
  );
  const zones = await readIfOffered<{ blocks: ZoneBlockRow[] }>("/state/zone-blocks");
  return { segments, segmentTotal: total, zoneBlocks: zones?.blocks ?? null };
}

/** Changes by itself. */
export async function readLife(): Promise<
  Pick<Picture, "growables" | "growableTotal" | "facilities" | "problems">
> {
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
