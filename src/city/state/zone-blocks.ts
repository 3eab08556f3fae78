import type { ZoneBlock } from "../game.js";
import { position } from "../places.js";
import type { ReadRoute } from "../route.js";
import { type LimitRule, paginate } from "./listing.js";

/** All that a city can have: a map with holes would mislead. */
const BLOCK_LIMIT: LimitRule = { fallback: 50_000, max: 50_000 };

/** GET /state/zone-blocks: the zone of every cell, in ascending id order. */
export const zoneBlocks: ReadRoute = {
  path: "/state/zone-blocks",
  label: "Read zone blocks",
  read: ({ city, query }) => {
    const { page, rows } = paginate(city.zoneBlocks(), query, BLOCK_LIMIT);
    return { ok: true, ...page, blocks: rows.map(row) };
  },
};

function row({ id, segmentId, position: at, angleRadians, rows, cells }: ZoneBlock) {
  return { id, segmentId, position: position(at), angleRadians, rows, cells: cells.join("") };
}
