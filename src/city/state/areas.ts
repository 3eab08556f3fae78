import type { MapArea } from "../game.js";
import type { ReadRoute } from "../route.js";
import { NO_LIMIT, paginate } from "./listing.js";

/** GET /state/areas: the tiles of the map that a city can own. Building does not ask for them. */
export const areas: ReadRoute = {
  path: "/state/areas",
  label: "Read map areas",
  read: ({ city, query }) => {
    const all = city.areas();
    const { page, rows } = paginate(all, query, NO_LIMIT);
    const ownedAreaCount = all.filter(({ owned }) => owned).length;
    return { ok: true, ...page, ownedAreaCount, areas: rows.map(areaRow) };
  },
};

export function areaRow({ tileX, tileZ, owned, purchasable, price, bounds }: MapArea) {
  return { tileX, tileZ, owned, purchasable, price, bounds: { ...bounds } };
}
