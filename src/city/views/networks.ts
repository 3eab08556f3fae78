/** Endpoints that list networks and check whether the town is connected to the map edge. */

import { isBuiltByClient, isLocalRoad, roadsAt, roadsOf } from "../anomalies/roads.js";
import { meanOf, middle } from "../geometry.js";
import { LIST_PARAMETERS, type ReadRoute, SERVICE_PARAMETER } from "../read-route.js";
import { cachedByRevision } from "../revision-cache.js";
import type { NetNode, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { RowCache } from "../wire/answers.js";
import { countBy, ENTITY_LIMIT, paginate, problemText, SHORT_LIMIT } from "./listing.js";

export const networks: ReadRoute = {
  path: "/state/networks",
  label: "Read networks",
  parameters: { ...LIST_PARAMETERS, ...SERVICE_PARAMETER },
  read: ({ world, query }) => {
    const service = query.text("service");
    const found = world.segments.all().filter(({ prefab }) => service === "" || prefab.service === service);
    const { page, rows } = paginate(found, query, ENTITY_LIMIT);
    return {
      ...page,
      serviceFilter: service,
      countsByService: countBy(found, ({ prefab }) => prefab.service),
      segments: rowCache.write(rows),
    };
  },
};

const rowCache = new RowCache(segmentRow, ({ problems }: NetSegment) => [problems]);

export function segmentRow({ id, prefab, name, problems, startNodeId, endNodeId, start, end }: NetSegment) {
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
    start,
    end,
    middle: middle({ start, end }),
  };
}

/** A node beyond this x or z counts as outside the map, even if it has no flag `outside`. */
const OUTSIDE_METERS = 8600;

/** GET /state/external-connections: whether the town's roads reach the map edge. */
const externalConnections: ReadRoute = {
  path: "/state/external-connections",
  label: "Inspect external connections",
  parameters: LIST_PARAMETERS,
  read: ({ world, query }) => {
    const { outside, components } = connectionsOf(world);
    const { page, rows } = paginate(components, query, SHORT_LIMIT);
    const local = components.filter(({ isLocalRoadComponent }) => isLocalRoadComponent);
    const [cityComponent] = components.toSorted((a, b) => townScore(b) - townScore(a));
    return {
      ...page,
      roadComponents: components.length,
      outsideRoadNodes: outside.size,
      outsideRoadSegments: roadsOf(world).filter((segment) => endsOf(segment).some((id) => outside.has(id)))
        .length,
      localRoadComponents: local.length,
      disconnectedLocalRoadComponents: local.filter(({ outsideConnected }) => !outsideConnected).length,
      cityComponentId: cityComponent?.componentId ?? -1,
      cityConnectedToOutside: cityComponent?.outsideConnected ?? false,
      components: rows,
    };
  },
};

const connectionsOf = cachedByRevision("networkRevision", (world: World) => {
  const outside = new Set(
    world.nodes
      .all()
      .filter(isOutside)
      .map(({ id }) => id),
  );
  return { outside, components: findComponents(world, outside) };
});

function isOutside({ outside, position: { x, z } }: NetNode): boolean {
  return outside || Math.abs(x) >= OUTSIDE_METERS || Math.abs(z) >= OUTSIDE_METERS;
}

/** Groups of connected roads, numbered from 1 in the order of their lowest segment ids. */
function findComponents(world: World, outside: ReadonlySet<number>) {
  const visited = new Set<number>();
  const groups: NetSegment[][] = [];
  for (const first of roadsOf(world)) {
    if (!visited.has(first.id)) groups.push(reach(first, world, visited).sort((a, b) => a.id - b.id));
  }
  return groups.map((segments, index) => {
    const nodeIds = new Set(segments.flatMap(endsOf));
    const outsideNodes = [...nodeIds].filter((id) => outside.has(id)).length;
    return {
      componentId: index + 1,
      segmentCount: segments.length,
      agentNamedSegments: segments.filter(isBuiltByClient).length,
      nonHighwaySegments: segments.filter(({ prefab }) => !prefab.name.includes("Highway")).length,
      outsideNodes,
      outsideConnected: outsideNodes > 0,
      isLocalRoadComponent: segments.some(isLocalRoad),
      sampleSegmentId: (segments[0] as NetSegment).id,
      sampleName: segments.find(({ name }) => name !== "")?.name ?? "",
      center: meanOf(segments.map(middle)),
    };
  });
}

type Component = ReturnType<typeof findComponents>[number];

/** Collects all segments connected to the first one and marks them visited. */
function reach(first: NetSegment, world: World, visited: Set<number>): NetSegment[] {
  const found = [first];
  const passedNodes = new Set<number>();
  visited.add(first.id);
  for (const segment of found) {
    for (const nodeId of endsOf(segment)) {
      if (passedNodes.has(nodeId)) continue;
      passedNodes.add(nodeId);
      for (const next of roadsAt(world, nodeId)) {
        if (visited.has(next.id)) continue;
        visited.add(next.id);
        found.push(next);
      }
    }
  }
  return found;
}

/** The group with the highest score counts as the town. Segments that clients built weigh most. */
function townScore({ agentNamedSegments, nonHighwaySegments }: Component): number {
  return 4 * agentNamedSegments + nonHighwaySegments;
}

function endsOf({ startNodeId, endNodeId }: NetSegment): [number, number] {
  return [startNodeId, endNodeId];
}

export const NETWORK_READS = [externalConnections, networks];
