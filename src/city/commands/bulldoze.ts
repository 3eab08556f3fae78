import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { removeBuilding } from "../simulation/fabric/buildings.js";
import { removeNode, removeSegment } from "../simulation/fabric/network.js";
import type { World } from "../simulation/state/world.js";
import { fieldText, flag, number, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireId } from "./requirements.js";

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
    if (!dryRun) remove();
    const message = `${entityType} ${id} ${dryRun ? "can be" : "was"} removed.`;
    const choice = entityType === "netSegment" ? { keepNodes } : {};
    return { message, entityType, id, ...choice };
  },
});

/** @throws RefusedError for an unknown id or entity type */
function removalOf(world: World, entityType: string, id: number, keepNodes: boolean): () => void {
  requireId(id);
  switch (entityType) {
    case "building": {
      const building = world.buildings.require(id);
      return () => removeBuilding(world, building);
    }
    case "netSegment": {
      const segment = world.segments.require(id);
      return () => removeSegment(world, segment, keepNodes);
    }
    case "netNode": {
      const node = world.nodes.require(id);
      return () => removeNode(world, node);
    }
    default: {
      const message = `Unknown entity type "${entityType}"; it must be building, netSegment or netNode`;
      throw new RefusedError(message);
    }
  }
}
