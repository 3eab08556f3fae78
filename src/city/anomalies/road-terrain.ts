/** Detects ground roads that do not fit the terrain: far below the town's level, or beside a cliff. */

import { type Box, boxAround, boxesTouch, lengthOf, middle, type Position, pointAlong } from "../geometry.js";
import type { NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import type { Anomaly } from "../views/listing.js";
import { isBuiltByClient, isLocalRoad, nameContains, roadsOf, segmentEnds } from "./roads.js";

const AREA_MARGIN_METERS = 700;
const BELOW_GRADE_METERS = 24;

const MIN_CLIFF_ROAD_METERS = 24;
const SAMPLES_ALONG = [0.25, 0.5, 0.75];
const SIDE_OFFSETS_METERS = [8, 22, 44, 66, 96];
const ROAD_TO_TERRAIN_METERS = 18;
const SIDE_TO_SIDE_METERS = 28;
const ADJACENT_METERS = 14;

/** Roads to the map edge that clients built are always reported as cliffs from this length on. */
const MIN_CONNECTOR_METERS = 140;

/** In order of segment id. A segment can have two: `roadBelowLocalGrade`, then `roadTerrainCliff`. */
export function findTerrainMismatches(world: World): Anomaly[] {
  const segments = roadsOf(world);
  const local = segments.filter(isLocalRoad);
  if (local.length === 0) return [];
  const area = local.map((segment) => boxAround(segment, AREA_MARGIN_METERS)).reduce(union);
  const localGradeY = gradeOf(segments);
  return segments.filter(isOnGround).flatMap((segment) => {
    const isExamined = isBuiltByClient(segment) || boxesTouch(boxAround(segment, 0), area);
    return [belowGrade(segment, localGradeY), isExamined ? cliff(world, segment) : null].filter(
      (anomaly) => anomaly !== null,
    );
  });
}

/** Mean height of the ground roads that clients built, except those to the map edge; 0 if there are none. */
function gradeOf(segments: readonly NetSegment[]): number {
  const heights = segments
    .filter((segment) => isOnGround(segment) && isBuiltByClient(segment))
    .filter(({ name }) => !nameContains(name, "outside") && !nameContains(name, "highway connector"))
    .map(meanHeight);
  return heights.length === 0 ? 0 : heights.reduce((sum, height) => sum + height, 0) / heights.length;
}

function belowGrade(segment: NetSegment, localGradeY: number): Anomaly | null {
  const roadY = meanHeight(segment);
  const belowBy = localGradeY - roadY;
  if (localGradeY <= 0 || !isBuiltByClient(segment) || belowBy < BELOW_GRADE_METERS) return null;
  return {
    type: "roadBelowLocalGrade",
    segmentId: segment.id,
    name: segment.name,
    prefab: segment.prefab.name,
    localGradeY,
    roadY,
    belowBy,
    segment: segmentEnds(segment),
  };
}

function cliff(world: World, segment: NetSegment): Anomaly | null {
  const length = lengthOf(segment);
  if (length < MIN_CLIFF_ROAD_METERS) return null;
  const relief = sampleRelief(world, segment, length);
  const isConnector =
    length >= MIN_CONNECTOR_METERS && isBuiltByClient(segment) && nameContains(segment.name, "outside");
  const roadToTerrain = isConnector
    ? Math.max(relief.roadToTerrain, ROAD_TO_TERRAIN_METERS)
    : relief.roadToTerrain;
  const isCliff =
    roadToTerrain >= ROAD_TO_TERRAIN_METERS ||
    relief.sideToSide >= SIDE_TO_SIDE_METERS ||
    relief.adjacent >= ADJACENT_METERS;
  if (!isCliff) return null;
  return {
    type: "roadTerrainCliff",
    segmentId: segment.id,
    name: segment.name,
    prefab: segment.prefab.name,
    maxRoadToTerrainDelta: roadToTerrain,
    maxSideToSideDelta: relief.sideToSide,
    maxAdjacentTerrainDelta: relief.adjacent,
    samplePosition: relief.samplePosition,
    segment: segmentEnds(segment),
  };
}

/** Samples the terrain on both sides of the road, at three places along it. */
function sampleRelief(world: World, { start, end }: NetSegment, length: number) {
  const samplePosition: Position = middle({ start, end });
  /** `samplePosition` is the point of the road where the terrain heights on its two sides differ most. */
  const relief = { roadToTerrain: 0, sideToSide: 0, adjacent: 0, samplePosition };
  const across = { x: -(end.z - start.z) / length, z: (end.x - start.x) / length };
  for (const t of SAMPLES_ALONG) {
    const road = pointAlong({ start, end }, t);
    const walk = (side: number) => {
      let previous = road.y;
      for (const offset of SIDE_OFFSETS_METERS) {
        const height = world.terrain.surfaceHeight(
          road.x + across.x * offset * side,
          road.z + across.z * offset * side,
        );
        relief.roadToTerrain = Math.max(relief.roadToTerrain, Math.abs(road.y - height));
        relief.adjacent = Math.max(relief.adjacent, Math.abs(height - previous));
        previous = height;
      }
      return previous;
    };
    const sideToSide = Math.abs(walk(1) - walk(-1));
    if (sideToSide > relief.sideToSide) {
      relief.sideToSide = sideToSide;
      relief.samplePosition = road;
    }
  }
  return relief;
}

function isOnGround({ prefab }: NetSegment): boolean {
  return prefab.elevation === "ground";
}

function meanHeight({ start, end }: NetSegment): number {
  return (start.y + end.y) / 2;
}

function union(a: Box, b: Box): Box {
  return {
    minX: Math.min(a.minX, b.minX),
    minZ: Math.min(a.minZ, b.minZ),
    maxX: Math.max(a.maxX, b.maxX),
    maxZ: Math.max(a.maxZ, b.maxZ),
  };
}
