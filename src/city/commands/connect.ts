import { z } from "zod";
import { findNetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { fieldText, flag, groundPoint, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { connectionFields, connectToService, MAX_CONNECTION_METERS } from "./connection.js";
import { DEFAULT_SNAP_METERS } from "./grid.js";
import { buildUnlessDryRun, planNetwork, planSegmentEnd } from "./network-plan.js";
import { requirePrefab, requireSnapDistance, requireWithin } from "./requirements.js";

export const connect = defineCommand({
  path: "/commands/connect",
  summary: "Builds a segment from a place to the nearest node of a service that it is not connected to yet.",
  label: ({ toService }) => `Connect to ${fieldText(toService, "Road")}`,
  fields: z.object({
    dryRun: flag(false),
    name: text(""),
    from: groundPoint,
    toService: text("Road"),
    maxDistance: number(200).describe("At most 1000 m."),
    roadPrefab: text("Basic Road"),
    snapDistance: number(DEFAULT_SNAP_METERS),
  }),
  act: (world, { roadPrefab, from, toService, maxDistance, snapDistance, ...fields }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    requireSnapDistance(snapDistance);
    requireWithin("maxDistance", maxDistance, 1, MAX_CONNECTION_METERS);
    const end = planSegmentEnd(world, prefab, from, snapDistance);
    const connection = connectToService(world, prefab, end, toService, maxDistance);
    const { link } = connection;
    const plan = planNetwork(world, link ? [end] : [], link ? [link] : [], "The connection");
    const built = buildUnlessDryRun(world, plan, fields);
    const { distance, ...joined } = connectionFields(connection, built.segmentIds);
    const message = link ? built.message : `Node ${joined.nodeId} is connected already.`;
    const { createdNodeIds, cost, warnings } = built;
    return { message, roadPrefab, ...joined, createdNodeIds, distance, cost, warnings };
  },
});
