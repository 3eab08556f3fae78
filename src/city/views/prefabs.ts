import { CELL_METERS } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute, SERVICE_PARAMETER } from "../read-route.js";
import { BUILDING_PREFABS, type BuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { NETWORK_PREFABS, type NetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { buildingCapacities } from "../simulation/fabric/buildings.js";
import { civicPowerKw } from "../simulation/utilities/electricity.js";
import { civicWaterM3 } from "../simulation/utilities/pipes.js";
import { levelName, zoneOf } from "../terms.js";
import { NO_LIMIT, paginate } from "./listing.js";

const roadPrefabs: ReadRoute = {
  path: "/prefabs/roads",
  label: "List road prefabs",
  parameters: LIST_PARAMETERS,
  read: ({ query }) => {
    const found = NETWORK_PREFABS.filter(({ service }) => service === "Road");
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ...page, roads: rows.map(({ name, displayName }) => ({ name, displayName })) };
  },
};

const networkPrefabs: ReadRoute = {
  path: "/prefabs/networks",
  label: "List network prefabs",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER },
  read: ({ query }) => {
    const found = NETWORK_PREFABS.filter(isOfService(query.text("service")));
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ...page, networks: rows.map(networkRow) };
  },
};

/** A network prefab as the API lists it. Costs are per metre. The capacity is the sum of both directions. */
function networkRow({ costPerCell, upkeepPerCell: _upkeep, ...row }: NetworkPrefab) {
  return { ...row, costPerMeter: costPerCell / CELL_METERS };
}

/** GET /prefabs/buildings. Omits the game's broken assets `Block Services - ...`. */
const buildingPrefabs: ReadRoute = {
  path: "/prefabs/buildings",
  label: "List building prefabs",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER },
  read: ({ query }) => {
    const found = BUILDING_PREFABS.filter(isOfService(query.text("service"))).filter(
      ({ blocked }) => !blocked,
    );
    const { page, rows } = paginate(found, query, NO_LIMIT);
    return { ...page, buildings: rows.map(buildingRow) };
  },
};

/** Capacities of a growable are minimums, without the random part. */
function buildingRow(prefab: BuildingPrefab) {
  const { name, displayName, service, subService, level, width, length, civic } = prefab;
  const { coverage, powerKw = 0, waterM3 = 0, sewageM3 = 0, heatKw = 0 } = civic ?? {};
  return {
    name,
    displayName,
    service,
    subService,
    level: levelName(level),
    width,
    length,
    growable: prefab.growable !== null,
    constructionCost: prefab.cost,
    upkeepPerWeek: prefab.upkeepPerWeek,
    ...buildingCapacities(prefab, () => 0),
    supply: { powerKw, waterM3, sewageM3, heatKw },
    coverage: coverage
      ? { service: coverage.kind, rangeMeters: coverage.radiusMeters, capacity: coverage.capacity }
      : null,
    storage: civic?.storage ?? 0,
    pollution: civic?.pollution ?? 0,
    needs: needsOf(prefab),
  };
}

/** Requirements of the building, such as a road, power or fuel. */
function needsOf(prefab: BuildingPrefab): string[] {
  const { growable, civic } = prefab;
  if (growable) return [`zone ${zoneOf(prefab)}`, "road", "power", "water", "sewage"];
  if (!civic) return [];
  const usesWater = civicWaterM3(civic) > 0;
  return [
    ...(civic.roadless ? [] : ["road"]),
    ...(civic.shore ? ["shore"] : []),
    ...(civicPowerKw(prefab) > 0 ? ["power"] : []),
    ...(usesWater ? ["water", "sewage"] : []),
    ...(civic.waterM3 || civic.sewageM3 ? ["water pipe"] : []),
    ...(civic.heatKw ? ["heating pipe"] : []),
    ...(civic.burnsFuel ? ["fuel by road from the map edge"] : []),
  ];
}

function isOfService(filter: string): (prefab: { service: string }) => boolean {
  return ({ service }) => filter === "" || service === filter;
}

export const PREFAB_READS = [buildingPrefabs, networkPrefabs, roadPrefabs];
