import { z } from "zod";
import { CELL_METERS, lengthOf } from "../geometry.js";
import { RefusedError } from "../refusal.js";
import { findNetworkPrefab } from "../simulation/catalogue/network-prefabs.js";
import { upgradeSegment } from "../simulation/fabric/network.js";
import { requireFunds } from "../simulation/life/finance.js";
import { fieldText, flag, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireId, requirePrefab } from "./requirements.js";

const MAX_SEGMENTS = 200;

export const upgradeRoad = defineCommand({
  path: "/commands/upgrade-road",
  summary:
    "Changes the prefab of roads in place. Zones and buildings stay, even if a wider road reaches under them. The city pays the difference in construction cost.",
  label: ({ roadPrefab }) => `Upgrade road to ${fieldText(roadPrefab, "Medium Road")}`,
  fields: z.object({
    dryRun: flag(false),
    id: number(0).describe("A road segment; `ids` for several, all of them or none."),
    ids: z.array(number(0), "must be a list of ids").default([]),
    roadPrefab: text("Medium Road"),
  }),
  act: (world, { dryRun, id, ids, roadPrefab }) => {
    const prefab = requirePrefab(findNetworkPrefab, "network", roadPrefab);
    const wanted = [...new Set(ids.length > 0 ? ids : [id])];
    if (wanted.length > MAX_SEGMENTS) {
      throw new RefusedError(`At most ${MAX_SEGMENTS} roads are upgraded at once, not ${wanted.length}`);
    }
    const segments = wanted.map((each) => {
      requireId(each);
      const segment = world.segments.require(each);
      if (segment.prefab.service === "Road" && prefab.service === "Road") return segment;
      const message = `Segment ${each} is a ${segment.prefab.displayName}; only roads become other roads`;
      throw new RefusedError(message);
    });
    const changed = segments.filter((segment) => segment.prefab !== prefab);
    const cost = changed.reduce((sum, segment) => {
      const difference = Math.max(prefab.costPerCell - segment.prefab.costPerCell, 0);
      return sum + (difference * lengthOf(segment)) / CELL_METERS;
    }, 0);
    requireFunds(world, cost, `Upgrading ${changed.length} roads to ${prefab.displayName}`);
    if (!dryRun) {
      for (const segment of changed) upgradeSegment(world, segment, prefab);
      world.ledger.book("Construction", cost);
    }
    const done = dryRun ? "would be" : "were";
    const message = `${changed.length} roads ${done} upgraded for ${cost.toFixed(2)}.`;
    const segmentIds = changed.map((segment) => segment.id);
    return { message, roadPrefab, segmentIds, skippedSegments: segments.length - changed.length, cost };
  },
});
