import type { NetSegment } from "../game.js";
import { middle, position } from "../places.js";
import type { ReadRoute } from "../route.js";
import { countBy, ENTITY_LIMIT, paginate, problemText } from "./listing.js";

/** GET /state/networks */
export const networks: ReadRoute = {
  path: "/state/networks",
  label: "Read networks",
  read: ({ city, query }) => {
    const service = query.text("service");
    const found = city.segments().filter(({ prefab }) => service === "" || prefab.service === service);
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    return {
      ok: true,
      ...page,
      serviceFilter: service,
      countsByService: countBy(found, ({ prefab }) => prefab.service),
      segments: rows.map(row),
    };
  },
};

function row({ id, prefab, name, problems, startNodeId, endNodeId, start, end }: NetSegment) {
  return {
    id,
    prefab: prefab.name,
    name,
    displayName: prefab.displayName,
    service: prefab.service,
    subService: prefab.subService,
    problems: problemText(problems),
    startNodeId,
    endNodeId,
    start: position(start),
    end: position(end),
    middle: position(middle(start, end)),
  };
}
