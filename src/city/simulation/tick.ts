/**
 * One simulation frame. Work is spread over a cycle of 256 frames: each frame updates one slice of the buildings and zone
 * blocks, and each city-wide update has its own frame.
 */
import { FLAG } from "../terms.js";
import { ROAD_COVERAGES } from "./catalogue/building-prefabs.js";
import { isRuin, updateSeverity } from "./fabric/buildings.js";
import { updateBusiness } from "./life/business.js";
import {
  abandon,
  accumulateGarbageAndCrime,
  demolishIfZoneDiffers,
  reasonToAbandon,
  updateFire,
  updateRuin,
  updateSupplyProblems,
} from "./life/decline.js";
import { updateDemand } from "./life/demand.js";
import { closeWeek } from "./life/finance.js";
import { continueConstruction, growOnBlock, updateLevel } from "./life/growth.js";
import { spanFrames } from "./life/individual-differences.js";
import {
  maybePostComplaint,
  maybePostWish,
  postPraise,
  reportAbandoned,
  reportBurnedDown,
  reportCity,
} from "./life/messages.js";
import { updateResidents } from "./life/residents.js";
import { closeServiceCycle, updateSurroundings } from "./life/services.js";
import { updateStorageAndFuel } from "./life/stores.js";
import { payTaxes, payUpkeep, updateTaxUnrest } from "./life/taxes.js";
import { assignProviders, countTraffic } from "./life/traffic.js";
import { FRAMES_PER_CYCLE, FRAMES_PER_WEEK } from "./state/calendar.js";
import { type Building, NO_PROBLEMS } from "./state/entities.js";
import type { World } from "./state/world.js";
import { distributePower } from "./utilities/electricity.js";
import { distributeHeat, distributeWater } from "./utilities/pipes.js";

/** For each city-wide update, the frame of the cycle in which it runs. */
const ROUNDS: ReadonlyMap<number, (world: World) => void> = new Map([
  [0, distributePower],
  [50, distributeWater],
  [100, distributeHeat],
  [150, markDeadHighways],
  [200, updateDemand],
  [250, reportCity],
  ...ROAD_COVERAGES.map((_, i) => [20 + 25 * i, (world: World) => assignProviders(world, i)] as const),
]);

/** Advances the city by one frame. */
export function tick(world: World): void {
  world.capture?.finish();
  world.frame++;
  const slice = world.frame % FRAMES_PER_CYCLE;
  if (world.frame % FRAMES_PER_WEEK === 0) closeWeek(world);
  ROUNDS.get(slice)?.(world);
  countTraffic(world);
  for (let id = slice; id < world.buildings.end; id += FRAMES_PER_CYCLE) {
    const building = world.buildings.get(id);
    if (building) visitBuilding(world, building);
  }
  for (let id = slice; id < world.blocks.end; id += FRAMES_PER_CYCLE) {
    const block = world.blocks.get(id);
    if (block) growOnBlock(world, block);
  }
}

function visitBuilding(world: World, building: Building): void {
  if (building.prefab.growable && demolishIfZoneDiffers(world, building)) return;
  if (isRuin(building)) updateRuin(world, building);
  else if ((building.flags & FLAG.Completed) === 0) continueConstruction(world, building);
  else if (building.prefab.growable) visitGrowable(world, building);
  else visitCivic(world, building);
}

function visitGrowable(world: World, building: Building): void {
  updateSupplyProblems(world, building);
  if (updateFire(world, building)) {
    reportBurnedDown(world, building);
    return;
  }
  if (!building.switchedOff) prosper(world, building);
  updateSeverity(building, world.frame, spanFrames(world, building, "patience"));
  maybePostComplaint(world, building);
  const reason = reasonToAbandon(world, building);
  if (reason) {
    abandon(world, building);
    reportAbandoned(world, building, reason);
  }
}

function prosper(world: World, building: Building): void {
  const excessTax = updateTaxUnrest(world, building);
  const around = updateSurroundings(world, building, excessTax);
  accumulateGarbageAndCrime(world, building, around);
  payTaxes(world, building);
  if (building.homes > 0) updateResidents(world, building, around, excessTax);
  if (building.jobs > 0) updateBusiness(world, building);
  if (updateLevel(world, building, around)) postPraise(world, building);
  else maybePostWish(world, building, around);
}

function visitCivic(world: World, building: Building): void {
  closeServiceCycle(building);
  updateStorageAndFuel(world, building);
  updateSupplyProblems(world, building);
  payUpkeep(world, building);
  updateSeverity(building, world.frame, spanFrames(world, building, "patience"));
}

/** Sets a problem on highways that end before the map edge. */
function markDeadHighways(world: World): void {
  for (const node of world.nodes.all()) {
    if (node.prefab.carries !== "traffic" || !node.prefab.name.startsWith("Highway")) continue;
    const dead = node.segmentIds.length === 1 && !node.outside;
    node.problems = dead ? { names: ["RoadNotConnected"], severity: "warning" } : NO_PROBLEMS;
  }
}
