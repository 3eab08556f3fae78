import { z } from "zod";
import { distance, type GroundPoint, squareAround } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { removeBuilding } from "../simulation/fabric/buildings.js";
import { removeNode, removeSegment } from "../simulation/fabric/network.js";
import { buildingsOnBlock } from "../simulation/fabric/zone-blocks.js";
import type { Building, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { recordBuildingRemoval, recordNodeRemoval, recordSegmentRemoval } from "./journal.js";
import { requireId, requireOnMap, requireWithin } from "./requirements.js";
import { MAX_PAINT_RADIUS_METERS } from "./zones.js";

export const bulldoze = defineCommand({
  path: "/commands/bulldoze",
  summary: "Removes a building, a segment or a node.",
  label: ({ entityType, id }) => `Bulldoze ${fieldText(entityType, "entity")} #${fieldText(id, "0")}`,
  fields: z.object({
    dryRun: flag(false),
    entityType: text("").describe("building, netSegment or netNode."),
    id: number(0),
    keepNodes: flag(false).describe("For a segment: leave end nodes that no segment uses any more."),
  }),
  act: (world, { dryRun, entityType, id, keepNodes }) => {
    const remove = removalOf(world, entityType, id, keepNodes);
    const warnings = entityType === "netSegment" ? lossesBeside(world, world.segments.at(id)) : [];
    if (!dryRun) remove();
    const message = `${entityType} ${id} ${dryRun ? "can be" : "was"} removed.`;
    const choice = entityType === "netSegment" ? { keepNodes, warnings } : {};
    return { message, entityType, id, ...choice };
  },
});

/** @throws RefusedError for an unknown id or entity type */
function removalOf(world: World, entityType: string, id: number, keepNodes: boolean): () => void {
  requireId(id);
  switch (entityType) {
    case "building": {
      const building = world.buildings.require(id);
      return () => removeBuildings(world, [building]);
    }
    case "netSegment": {
      const segment = world.segments.require(id);
      return () => removeSegments(world, [segment], keepNodes);
    }
    case "netNode": {
      const node = world.nodes.require(id);
      return () => {
        for (const each of node.segmentIds) recordSegmentRemoval(world, world.segments.at(each));
        recordNodeRemoval(world, node);
        removeNode(world, node);
      };
    }
    default: {
      const message = `Unknown entity type "${entityType}"; it must be building, netSegment or netNode`;
      throw new RefusedError(message);
    }
  }
}

/** A warning about the buildings that lose their zone with a street. */
function lossesBeside(world: World, { blockIds }: NetSegment): string[] {
  const beside = blockIds.flatMap((id) => buildingsOnBlock(world, world.blocks.at(id))).length;
  if (beside === 0) return [];
  return [
    beside === 1
      ? "The building beside it loses its zone and may go"
      : `The ${beside} buildings beside it lose their zone and may go`,
  ];
}

function removeBuildings(world: World, buildings: readonly Building[]): void {
  for (const building of buildings) {
    recordBuildingRemoval(world, building);
    removeBuilding(world, building);
  }
}

function removeSegments(world: World, segments: readonly NetSegment[], keepNodes: boolean): void {
  for (const segment of segments) {
    recordSegmentRemoval(world, segment);
    removeSegment(world, segment, keepNodes);
  }
}

const CLEARABLE = ["building", "netSegment"] as const;

const bulldozeArea = defineCommand({
  path: "/commands/bulldoze-area",
  summary: "Removes all buildings with their centre and all segments with both ends within a circle.",
  label: () => "Bulldoze area",
  fields: z.object({
    dryRun: flag(false),
    center: groundPoint,
    radius: number(0).describe("Required: 1 to 256 m."),
    entityTypes: z
      .array(z.enum(CLEARABLE, `must be ${CLEARABLE.join(" or ")}`), "must be a list")
      .default([...CLEARABLE]),
    service: text("").describe("Only this service; empty for all."),
    keepNodes: flag(false),
  }),
  act: (world, { dryRun, center, radius, entityTypes, service, keepNodes }) => {
    requireOnMap(center);
    requireWithin("radius", radius, 1, MAX_PAINT_RADIUS_METERS);
    const isWanted = ({ prefab }: { prefab: { service: string } }) =>
      service === "" || prefab.service === service;
    const isInside = (place: GroundPoint) => distance(place, center) <= radius;
    const circle = squareAround(center, radius);
    const buildings = entityTypes.includes("building")
      ? world.buildings.near(circle).filter((building) => isWanted(building) && isInside(building.position))
      : [];
    const segments = entityTypes.includes("netSegment")
      ? world.segments
          .near(circle)
          .filter((each) => isWanted(each) && isInside(each.start) && isInside(each.end))
      : [];
    const buildingIds = buildings.map(({ id }) => id);
    const segmentIds = segments.map(({ id }) => id);
    if (!dryRun) {
      removeBuildings(world, buildings);
      removeSegments(world, segments, keepNodes);
    }
    const done = dryRun ? "would be" : "were";
    const message = `${buildings.length} buildings and ${segments.length} segments ${done} cleared.`;
    return { message, center, radius, buildingIds, segmentIds };
  },
});

export const BULLDOZE_COMMANDS = [bulldoze, bulldozeArea];
