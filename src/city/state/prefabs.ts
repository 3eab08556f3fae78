import type { BuildingPrefab, NetworkPrefab } from "../game.js";
import type { ReadRoute } from "../route.js";
import { levelName } from "../terms.js";
import { NO_LIMIT, paginate } from "./listing.js";

export const roadPrefabs: ReadRoute = {
  path: "/prefabs/roads",
  label: "List road prefabs",
  read: ({ city, query }) => {
    const found = city.networkPrefabs().filter(({ service }) => service === "Road");
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ok: true, ...page, roads: rows.map(({ name, displayName }) => ({ name, displayName })) };
  },
};

export const networkPrefabs: ReadRoute = {
  path: "/prefabs/networks",
  label: "List network prefabs",
  read: ({ city, query }) => {
    const found = city.networkPrefabs().filter(isOfService(query.text("service")));
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ok: true, ...page, networks: rows.map(networkRow) };
  },
};

function networkRow({ name, displayName, service, subService }: NetworkPrefab) {
  return { name, displayName, service, subService };
}

/** GET /prefabs/buildings: without the known broken family. */
export const buildingPrefabs: ReadRoute = {
  path: "/prefabs/buildings",
  label: "List building prefabs",
  read: ({ city, query }) => {
    const found = city
      .buildingPrefabs()
      .filter(isOfService(query.text("service")))
      .filter(({ blocked }) => !blocked);
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ok: true, ...page, buildings: rows.map(buildingRow) };
  },
};

function buildingRow({ name, displayName, service, subService, level, width, length }: BuildingPrefab) {
  return { name, displayName, service, subService, level: levelName(level), width, length };
}

function isOfService(filter: string): (prefab: { service: string }) => boolean {
  return ({ service }) => filter === "" || service === filter;
}
