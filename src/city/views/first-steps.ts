/** First steps of a city without citizens: street, power, water, drains, homes, time. */
import { boxAround, distance, type GroundPoint, middle } from "../geometry.js";
import { findBuildingPrefab } from "../simulation/catalogue/building-prefabs.js";
import { leadsOutside } from "../simulation/fabric/reach.js";
import type { NetNode, NetSegment } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { ZONE_GROWTH, ZONES } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import type { Remedy } from "./remedies.js";

export interface Step {
  readonly topic: string;
  readonly message: string;
  readonly place: GroundPoint;
  /** Empty until the steps before it are done. */
  readonly commands: readonly Remedy[];
}

const MAIN_STREET_METERS = 300;
const CROSS_STREET_METERS = { west: 320, east: 160 };
/** Number of streets that get pipes and power lines. */
const SUPPLIED_STREETS = 24;
const ZONED_DEPTH_METERS = 40;

/** Steps that are not done yet, in order. */
export function firstSteps(world: World): Step[] {
  if (world.citizens.size > 0) return [];
  const streets = world.segments.all().filter(({ prefab }) => prefab.zoning);
  const gates = highwayGates(world);
  const isReady = streets.length > 0;
  const isJoined = streets.some((street) => gates.length === 0 || leadsOutside(world, street.startNodeId));
  const start = gates[0]?.position ?? { x: 0, z: 0 };
  const place = streets.length > 0 ? middle(streets[Math.floor(streets.length / 2)] as NetSegment) : start;
  const civic = world.buildings.all().map(({ prefab }) => prefab.civic);
  const has = (carried: string) => world.segments.all().some(({ prefab }) => prefab.carries === carried);
  const isZoned = world.blocks.all().some(({ cells }) => cells.some((cell) => HOMES.includes(cell)));
  const build = (name: string, near: GroundPoint): Remedy => {
    const prefab = findBuildingPrefab(name);
    if (!prefab) throw new Error(`the catalogue has no ${name}`);
    return { build: prefab, near };
  };
  const end = streets.at(-1)?.end ?? place;
  const steps: (Step & { readonly isDone: boolean })[] = [
    {
      topic: "first street",
      message: isReady
        ? "Join a street to the highway. Nobody can move in without a way."
        : "Lay a street and join it to the highway, so that people can move in.",
      commands: isReady ? [joinStreet(streets, gates)] : firstStreets(gates),
      isDone: isJoined,
    },
    {
      topic: "first power",
      message: "Build a wind turbine, and power lines along the streets.",
      commands: [...(has("power") ? [] : alongStreets(streets, "Power Line")), build("Wind Turbine", end)],
      isDone: civic.some((role) => role?.powerKw),
    },
    {
      topic: "first water",
      message: "Lay pipes under the streets and build a water tower.",
      commands: [...(has("water") ? [] : alongStreets(streets, "Water Pipe")), build("Water Tower", end)],
      isDone: civic.some((role) => role?.waterM3),
    },
    {
      topic: "first drains",
      message: "Build a treatment plant for waste water.",
      commands: [build("Inland Water Treatment Plant 01", end)],
      isDone: civic.some((role) => role?.sewageM3),
    },
    {
      topic: "first homes",
      message: "Zone land for homes beside the street. Shops and works follow when people ask for them.",
      commands: homesBeside(streets),
      isDone: isZoned,
    },
    {
      topic: "first week",
      message: "Start the clock. The first people move in within a week or two.",
      commands: [{ command: "set-simulation-speed", fields: { paused: false, speed: 2 } }],
      isDone: !world.paused,
    },
  ].map((step) => ({ ...step, place }));
  const open = steps.filter(({ isDone }) => !isDone);
  // Everything else stands beside a street.
  return open.map((step, i) => ({ ...step, commands: isReady || i === 0 ? step.commands : [] }));
}

/** A street from the highway to the end of a street that is nearest to it. */
function joinStreet(streets: readonly NetSegment[], [near, far = near]: readonly NetNode[]): Remedy {
  const gate = far?.position ?? { x: 0, z: 0 };
  const ends = streets.flatMap(({ start, end }) => [start, end]);
  const [nearest = gate] = ends.toSorted((a, b) => distance(a, gate) - distance(b, gate));
  return layStreet(gate, nearest);
}

const HOMES = ZONES.flatMap((zone, value) => (ZONE_GROWTH[zone]?.service === "Residential" ? [value] : []));

/** Nodes of both carriageways of the highway that are nearest to the middle of the map; the nearer one first. */
function highwayGates(world: World): NetNode[] {
  const center = { x: 0, z: 0 };
  const roads = world.nodes
    .all()
    .filter(({ id, prefab }) => prefab.service === "Road" && leadsOutside(world, id));
  const away = (node: NetNode) => distance(node.position, center);
  const [near] = roads.toSorted((a, b) => away(a) - away(b));
  if (!near) return [];
  const others = roads.filter(
    (node) => !areJoined(node, near) && distance(node.position, near.position) < 60,
  );
  const [far] = others.toSorted(
    (a, b) => distance(a.position, near.position) - distance(b.position, near.position),
  );
  return far ? [near, far] : [near];
}

function areJoined(a: NetNode, b: NetNode): boolean {
  return a === b || a.segmentIds.some((id) => b.segmentIds.includes(id));
}

/** A main street from the highway to the middle of the map, and a street across. Without a highway both are in the middle. */
function firstStreets([near, far = near]: readonly NetNode[]): Remedy[] {
  const gate = far?.position ?? { x: 0, z: MAIN_STREET_METERS / 2 };
  const join = near?.position ?? gate;
  const length = distance(gate, join);
  const [dx, dz] = length > 0 ? [(join.x - gate.x) / length, (join.z - gate.z) / length] : [0, -1];
  const end = { x: join.x + dx * MAIN_STREET_METERS, z: join.z + dz * MAIN_STREET_METERS };
  const { west, east } = CROSS_STREET_METERS;
  return [
    layStreet(gate, end),
    layStreet({ x: end.x + dz * west, z: end.z - dx * west }, { x: end.x - dz * east, z: end.z + dx * east }),
  ];
}

function layStreet(start: GroundPoint, end: GroundPoint): Remedy {
  const ends = { start: { x: start.x, z: start.z }, end: { x: end.x, z: end.z } };
  return { command: "build-road", fields: { ...ends, snapDistance: 8, split: true } };
}

function alongStreets(streets: readonly NetSegment[], roadPrefab: string): Remedy[] {
  return streets.slice(0, SUPPLIED_STREETS).map(({ start, end }): Remedy => {
    const ends = { start: { x: start.x, z: start.z }, end: { x: end.x, z: end.z } };
    return { command: "build-network", fields: { roadPrefab, ...ends, snapDistance: 8 } };
  });
}

/** Zones along the half of the streets that was built last. */
function homesBeside(streets: readonly NetSegment[]): Remedy[] {
  return streets.slice(Math.floor(streets.length / 2)).map((street): Remedy => {
    const { minX, maxX, minZ, maxZ } = boxAround(street, ZONED_DEPTH_METERS);
    const fields: JsonObject = {
      zone: "ResidentialLow",
      from: { x: minX, z: minZ },
      to: { x: maxX, z: maxZ },
    };
    return { command: "zone-rectangle", fields };
  });
}
