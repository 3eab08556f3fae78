/**
 * What a building is within reach of: the road it opens to and the pipes that can serve it. Kept up to date when
 * either comes or goes; a pure function of where things are.
 */

import { boxAround, CELL_METERS, distanceToLine, squareAround } from "../../geometry.js";
import type { SimBuilding, SimSegment } from "../state/entities.js";
import type { World } from "../state/world.js";

/** A pipe serves buildings up to this far away. */
const PIPE_REACH_METERS = 100;
/** How far the footprint's edge may be from the edge of its road. */
const DRIVEWAY_METERS = 16;
const WIDEST_ROAD_METERS = 32;
const LARGEST_FOOTPRINT_CELLS = 16;

/** Works out a building's road and pipes. */
export function attach(world: World, building: SimBuilding): void {
  const halfExtent = halfExtentOf(building);
  const reach = Math.max(PIPE_REACH_METERS, halfExtent + DRIVEWAY_METERS + WIDEST_ROAD_METERS / 2);
  building.roadId = 0;
  building.waterPipeIds = [];
  building.heatPipeIds = [];
  let nearestRoad = Number.POSITIVE_INFINITY;
  for (const id of world.segmentGrid.near(squareAround(building.position, reach))) {
    const segment = world.segments.at(id);
    const { prefab } = segment;
    const away = distanceToLine(building.position, segment);
    if (prefab.carries === "water" && away <= PIPE_REACH_METERS) building.waterPipeIds.push(id);
    else if (prefab.carries === "heat" && away <= PIPE_REACH_METERS) building.heatPipeIds.push(id);
    else if (prefab.frontage && away < nearestRoad && away <= roadReach(segment, halfExtent)) {
      nearestRoad = away;
      building.roadId = id;
    }
  }
}

/** After a segment came or went: works out anew every building that may be concerned. */
export function reattachNear(world: World, segment: SimSegment): void {
  const largest = (LARGEST_FOOTPRINT_CELLS / 2) * CELL_METERS;
  const grow = Math.max(PIPE_REACH_METERS, largest + DRIVEWAY_METERS + WIDEST_ROAD_METERS / 2);
  for (const id of world.buildingGrid.near(boxAround(segment, grow))) {
    attach(world, world.buildings.at(id));
  }
}

function halfExtentOf(building: SimBuilding): number {
  return (Math.max(building.prefab.width, building.prefab.length) / 2) * CELL_METERS;
}

function roadReach(road: SimSegment, halfExtent: number): number {
  return road.prefab.widthMeters / 2 + halfExtent + DRIVEWAY_METERS;
}
