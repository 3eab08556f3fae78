import type { ReadRoute } from "../route.js";
import { levelName } from "../terms.js";

/** GET /prefabs/roads */
export const roadPrefabs: ReadRoute = {
  path: "/prefabs/roads",
  label: "List road prefabs",
  read: ({ city }) => ({
    ok: true,
    roads: city
      .networkPrefabs()
      .filter(({ service }) => service === "Road")
      .map(({ name, displayName }) => ({ name, displayName })),
  }),
};

/** GET /prefabs/networks */
export const networkPrefabs: ReadRoute = {
  path: "/prefabs/networks",
  label: "List network prefabs",
  read: ({ city, query }) => ({
    ok: true,
    networks: city
      .networkPrefabs()
      .filter(isOfService(query.text("service")))
      .map(({ name, displayName, service, subService }) => ({ name, displayName, service, subService })),
  }),
};

/** GET /prefabs/buildings: without the known broken family. */
export const buildingPrefabs: ReadRoute = {
  path: "/prefabs/buildings",
  label: "List building prefabs",
  read: ({ city, query }) => ({
    ok: true,
    buildings: city
      .buildingPrefabs()
      .filter(isOfService(query.text("service")))
      .filter(({ blocked }) => !blocked)
      .map(({ name, displayName, service, subService, level, width, length }) => {
        return { name, displayName, service, subService, level: levelName(level), width, length };
      }),
  }),
};

function isOfService(filter: string): (prefab: { service: string }) => boolean {
  return ({ service }) => filter === "" || service === filter;
}
