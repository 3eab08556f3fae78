import { z } from "zod";
import type { CommandRoute } from "../route.js";
import { flag, parseFields, point, shown, text } from "../wire/requests.js";

const FIELDS = z.object({
  dryRun: flag(false),
  roadPrefab: text("Basic Road"),
  start: point,
  end: point,
  name: text(""),
});

/** POST /commands/build-network: up to two nodes and one segment of any network prefab. */
export const buildNetwork: CommandRoute = {
  path: "/commands/build-network",
  fields: FIELDS,
  label: ({ roadPrefab }) => `Build network ${shown(roadPrefab, "network")}`,
  run: (city, body) => {
    const { roadPrefab, ...fields } = parseFields(FIELDS, body);
    const { built } = city.apply({ type: "build-network", prefab: roadPrefab, ...fields });
    const message = built ? `Built segment ${built.segmentId}.` : "The segment can be built.";
    return { ok: true, dryRun: fields.dryRun, message, ...built, roadPrefab };
  },
};

/** POST /commands/build-road: its older name. */
export const buildRoad: CommandRoute = { ...buildNetwork, path: "/commands/build-road" };
