/** Every endpoint that works on a loaded city. */
import { batch } from "./commands/batch.js";
import { buildNetwork, buildRoad } from "./commands/build-network.js";
import { bulldoze } from "./commands/bulldoze.js";
import { disableBlockedAssets } from "./commands/disable-blocked-assets.js";
import { moveBuilding } from "./commands/move-building.js";
import { placeBuilding } from "./commands/place-building.js";
import { repairZoneClusters, repairZonesToGrowables } from "./commands/repair-zones.js";
import { save } from "./commands/save.js";
import { setBuildingActive } from "./commands/set-building-active.js";
import { setSimulationSpeed } from "./commands/set-simulation-speed.js";
import { setTaxRate } from "./commands/set-tax-rate.js";
import { setZone } from "./commands/set-zone.js";
import type { CommandRoute, ReadRoute } from "./route.js";
import { buildingAnomalies, roadAnomalies, zoneAnomalies } from "./state/anomalies.js";
import { chirps } from "./state/chirps.js";
import { economy } from "./state/economy.js";
import { externalConnections } from "./state/external-connections.js";
import { facilities } from "./state/facilities.js";
import { growables } from "./state/growables.js";
import { networks } from "./state/networks.js";
import { buildingPrefabs, networkPrefabs, roadPrefabs } from "./state/prefabs.js";
import { problems } from "./state/problems.js";
import { saves } from "./state/saves.js";
import { demand, summary } from "./state/summary.js";
import { terrain } from "./state/terrain.js";
import { zoneBlocks } from "./state/zone-blocks.js";
import { zones } from "./state/zones.js";

export const READ_ROUTES: readonly ReadRoute[] = [
  summary,
  demand,
  chirps,
  zones,
  zoneBlocks,
  terrain,
  growables,
  roadPrefabs,
  networkPrefabs,
  buildingPrefabs,
  problems,
  economy,
  facilities,
  networks,
  roadAnomalies,
  externalConnections,
  buildingAnomalies,
  zoneAnomalies,
  saves,
];

export const COMMAND_ROUTES: readonly CommandRoute[] = [
  buildNetwork,
  buildRoad,
  setZone,
  repairZonesToGrowables,
  repairZoneClusters,
  placeBuilding,
  moveBuilding,
  setBuildingActive,
  disableBlockedAssets,
  bulldoze,
  save,
  setSimulationSpeed,
  setTaxRate,
  batch,
];
