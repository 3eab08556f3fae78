import { z } from "zod";
import { distance, type GroundPoint } from "../geometry.js";
import { findNetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { findReusableNode, requireRoomForSegment } from "../simulation/fabric/network.js";
import { requireFunds } from "../simulation/life/finance.js";
import { fieldText, flag, optionalNumber, point, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { buildPlan, costOf, nearestNode, pointOfEnd, type SegmentEnd, warningsOf } from "./network-plan.js";
import { requireMinLength, requireOnMap, requirePrefab, requireSnapDistance } from "./requirements.js";

export const buildNetwork = defineCommand({
  path: "/commands/build-network",
  summary:
    "Builds one straight segment of any network prefab. An end near a compatible node uses that node; otherwise a node is created. The heights sent are used only for the length check; the city takes those of the terrain.",
  label: ({ roadPrefab }) => `Build network ${fieldText(roadPrefab, "network")}`,
  fields: z.object({
    dryRun: flag(false),
    roadPrefab: text("Basic Road"),
    start: point,
    end: point,
    name: text("").describe("Empty: a generated name."),
    snapDistance: optionalNumber.describe(
      "An end uses the nearest node within this distance, 0 to 64 m. Null: the node with the lowest id within 2 m.",
    ),
  }),
  act: (world, { dryRun, roadPrefab, start, end, name, snapDistance }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    requireOnMap(start);
    requireOnMap(end);
    requireMinLength(start, end);
    if (snapDistance !== null) requireSnapDistance(snapDistance);
    const endAt = (place: GroundPoint): SegmentEnd => {
      const node =
        snapDistance === null
          ? findReusableNode(world, prefab, place)
          : nearestNode(world, prefab, place, snapDistance);
      return { point: place, node, reused: node !== undefined };
    };
    const [from, to] = [endAt(start), endAt(end)];
    const link = { prefab, from, to };
    requireRoomForSegment(world, from.node, to.node);
    const cost = costOf(link);
    const meters = distance(pointOfEnd(from), pointOfEnd(to));
    requireFunds(world, cost, `A ${prefab.displayName} of ${meters.toFixed(0)} m`);
    const warnings = warningsOf(world, [link]);
    const plan = { ends: [from, to], links: [link], skippedSegments: 0, cost };
    const [segmentId] = dryRun ? [] : buildPlan(world, plan, name);
    const ids = segmentId && { segmentId, startNodeId: from.node?.id, endNodeId: to.node?.id };
    return {
      message: segmentId ? `Built segment ${segmentId}.` : "The segment can be built.",
      ...ids,
      roadPrefab,
      cost,
      reusedStartNode: from.reused,
      reusedEndNode: to.reused,
      warnings,
    };
  },
});

/** Former path of `build-network`, which clients still use. */
export const buildRoad = { ...buildNetwork, path: "/commands/build-road" };
