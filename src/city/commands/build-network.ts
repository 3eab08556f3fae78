import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, optionalNumber, parseFields, point, shown, text } from "../wire/requests.js";

const FIELDS = z.object({
  dryRun: flag(false),
  roadPrefab: text("Basic Road"),
  start: point,
  end: point,
  name: text(""),
  snapDistance: optionalNumber,
});

/** POST /commands/build-network: up to two nodes and one segment of any network prefab. */
export const buildNetwork: CommandRoute = {
  path: "/commands/build-network",
  fields: FIELDS,
  label: ({ roadPrefab }) => `Build network ${shown(roadPrefab, "network")}`,
  run: (city, body) => {
    const { roadPrefab, ...fields } = parseFields(FIELDS, body);
    const result = city.apply({ type: "build-network", prefab: roadPrefab, ...fields });
    const { built, cost, reusedStartNode, reusedEndNode, crossedSegmentIds } = result;
    const message = built ? `Built segment ${built.segmentId}.` : "The segment can be built.";
    const reused = { reusedStartNode, reusedEndNode };
    const warnings = crossingWarnings(crossedSegmentIds);
    return { ok: true, dryRun: fields.dryRun, message, ...built, roadPrefab, cost, ...reused, ...warnings };
  },
};

/** POST /commands/build-road: its older name. */
export const buildRoad: CommandRoute = { ...buildNetwork, path: "/commands/build-road" };

/** Pipes and roads that cross look joined, and are not. */
export function crossingWarnings(crossedSegmentIds: readonly number[]): { warnings?: readonly string[] } {
  if (crossedSegmentIds.length === 0) return {};
  const [first, ...more] = crossedSegmentIds;
  const which = more.length === 0 ? `segment ${first}` : `segments ${crossedSegmentIds.join(", ")}`;
  return { warnings: [`It crosses ${which} without a node: nothing passes from one to the other`] };
}
