/** Street names, and the cars on the streets. Names are drawn in pixels, cars in metres. */
import { distance, lengthOf } from "../city/geometry.js";
import type { Place, SegmentRow, TrafficRow } from "./api.js";
import type { Colors } from "./colors.js";

const FONT = "11px system-ui, sans-serif";
/** Minimum distance on the screen between two labels of one street. */
const REPEAT_PIXELS = 400;

/** Writes the name of each street along the street. Leaves out names that do not fit. */
export function drawStreetNames(
  context: CanvasRenderingContext2D,
  roads: readonly SegmentRow[],
  moveTo: (place: Place) => void,
  palette: Colors,
  pixelsPerMeter: number,
): void {
  const written = new Map<string, Place[]>();
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = palette.ground;
  context.fillStyle = palette.label;
  for (const { name, start, end } of roads) {
    if (name === "" || context.measureText(name).width > lengthOf({ start, end }) * pixelsPerMeter) continue;
    const middle = { x: (start.x + end.x) / 2, z: (start.z + end.z) / 2 };
    const others = written.get(name) ?? [];
    if (others.some((other) => distance(other, middle) * pixelsPerMeter < REPEAT_PIXELS)) continue;
    written.set(name, [...others, middle]);
    moveTo(middle);
    const angle = Math.atan2(start.z - end.z, end.x - start.x);
    const isUpsideDown = Math.abs(angle) > Math.PI / 2;
    context.rotate(isUpsideDown ? angle + Math.PI : angle);
    context.strokeText(name, 0, 0);
    context.fillText(name, 0, 0);
  }
}

const CAR_COLORS = ["#c62828", "#f5f5f5", "#263238", "#1565c0", "#f9a825"];
const CAR_METERS = { length: 4.5, width: 2 };
/** Distance of a lane from the middle of the road. */
const LANE_METERS = 2.6;
const LEAST_GAP_METERS = 8;
const MOST_CARS = 800;

/**
 * Draws moving cars. Roads with more traffic have more cars, and cars drive at the speed of the traffic.
 * @param seconds animation time: the cars move as it increases
 */
export function drawCars(
  context: CanvasRenderingContext2D,
  traffic: readonly TrafficRow[],
  roadOf: (segmentId: number) => SegmentRow | undefined,
  seconds: number,
): void {
  let drawn = 0;
  for (const { segmentId, volumePerHour, speedKmh } of traffic) {
    const road = roadOf(segmentId);
    if (!road || volumePerHour === 0) continue;
    const length = lengthOf(road);
    const present = (volumePerHour * length) / (1000 * Math.max(speedKmh, 1));
    const count = Math.min(Math.ceil(present), Math.floor((2 * length) / LEAST_GAP_METERS));
    const [dx, dz] = [(road.end.x - road.start.x) / length, (road.end.z - road.start.z) / length];
    for (let i = 0; i < count && drawn < MOST_CARS; i++, drawn++) {
      const run = (i * 0.618 + segmentId * 0.37 + (seconds * speedKmh) / (3.6 * length)) % 1;
      const isBack = i % 2 === 1;
      const at = (isBack ? 1 - run : run) * length;
      const side = isBack ? LANE_METERS : -LANE_METERS;
      context.save();
      context.translate(road.start.x + dx * at - dz * side, road.start.z + dz * at + dx * side);
      context.rotate(Math.atan2(dz, dx));
      context.fillStyle = CAR_COLORS[(segmentId + i) % CAR_COLORS.length] as string;
      context.fillRect(-CAR_METERS.length / 2, -CAR_METERS.width / 2, CAR_METERS.length, CAR_METERS.width);
      context.restore();
    }
  }
}
