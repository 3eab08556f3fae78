/** Commands that do several things at once: all of them, or none and the city refuses. Units as in game.ts. */
import type { GroundPoint } from "./terms.js";

/** What is built of a network, by id; the planned numbers on a dry run. */
export interface BuiltNetwork {
  /** The nodes of the whole plan, in its order, those that were there before included; empty on a dry run. */
  readonly nodeIds: readonly number[];
  readonly createdNodeIds: readonly number[];
  readonly segmentIds: readonly number[];
  readonly reusedNodes: number;
  /** Pairs of nodes that a segment of the same service joined already. */
  readonly skippedSegments: number;
  readonly plannedNodes: number;
  readonly plannedSegments: number;
  /** Money. */
  readonly cost: number;
  /** Segments that something new crosses without a node in common, so that nothing passes from one to the other. */
  readonly crossedSegmentIds: readonly number[];
}

/** Streets around `columns` x `rows` square blocks. */
export interface GridShape {
  readonly prefab: string;
  /** At most 400 blocks, in a neighborhood 144. */
  readonly columns: number;
  readonly rows: number;
  /** Between crossings, 32 to 256 m. */
  readonly spacing: number;
  /** Clockwise seen from above. */
  readonly rotationDegrees: number;
  /** A crossing this close to a compatible node uses it, 0 to 64 m. */
  readonly snapDistance: number;
  /** The name of every segment; empty for generated ones. */
  readonly name: string;
}

export interface BuildGrid extends GridShape {
  readonly type: "build-grid";
  readonly dryRun: boolean;
  /** The first crossing. */
  readonly origin: GroundPoint;
}

export interface BuildGridResult extends BuiltNetwork {
  readonly bounds: {
    readonly minX: number;
    readonly maxX: number;
    readonly minZ: number;
    readonly maxZ: number;
  };
  /** Row by row. */
  readonly blockCenters: readonly GroundPoint[];
}

/** One segment from a place to the nearest node of a service that the place is not joined to yet. */
export interface Connect {
  readonly type: "connect";
  readonly dryRun: boolean;
  readonly from: GroundPoint;
  readonly toService: string;
  /** At most 1000 m. */
  readonly maxDistance: number;
  readonly prefab: string;
  readonly snapDistance: number;
  readonly name: string;
}

export interface ConnectResult extends BuiltNetwork, Connection {}

export interface Connection {
  /** The place stands on a node of the service, and no other part of it is near: nothing was built. */
  readonly alreadyConnected: boolean;
  /** 0 for one that a dry run would create. */
  readonly nodeId: number;
  readonly targetNodeId: number;
  readonly targetPosition: GroundPoint;
  readonly distance: number;
  readonly segmentIds: readonly number[];
}

/** In which order the lighter zones of a neighborhood take their blocks. */
export const PLACEMENTS = ["perimeter", "core", "corners"] as const;
export type Placement = (typeof PLACEMENTS)[number];

/** A grid, joined to a road if asked, with zones by weight. */
export interface BuildNeighborhood extends GridShape {
  readonly type: "build-neighborhood";
  readonly dryRun: boolean;
  readonly center: GroundPoint;
  /** A service whose nearest node, or a place whose nearest road node the grid is joined to; null for none. */
  readonly connectTo: string | GroundPoint | null;
  readonly connectMaxDistance: number;
  /** Zone -> weight above 0. The heaviest is the background. */
  readonly zoneMix: Readonly<Record<string, number>>;
  readonly placement: Placement;
  readonly preserveOccupied: boolean;
  /** Null for half the spacing. */
  readonly zoneRadius: number | null;
}

export interface BuildNeighborhoodResult extends BuildGridResult {
  readonly connection: Connection | null;
  readonly zoneRadius: number;
  readonly blocks: readonly ZonedBlock[];
}

export interface ZonedBlock {
  readonly index: number;
  readonly column: number;
  readonly row: number;
  readonly center: GroundPoint;
  readonly zone: string;
  /** 0 on a dry run. */
  readonly changedCells: number;
}

/** What can be cleared at once. */
export const CLEARABLE = ["building", "netSegment"] as const;
export type Clearable = (typeof CLEARABLE)[number];

/** Clears buildings whose centres, and segments both of whose ends, lie within a circle. */
export interface BulldozeArea {
  readonly type: "bulldoze-area";
  readonly dryRun: boolean;
  readonly center: GroundPoint;
  /** Metres, above 0 and at most 256. */
  readonly radius: number;
  readonly entityTypes: readonly Clearable[];
  /** Empty for all. */
  readonly service: string;
  readonly keepNodes: boolean;
}

export interface BulldozeAreaResult {
  /** What was cleared, or would be. */
  readonly buildingIds: readonly number[];
  readonly segmentIds: readonly number[];
}
