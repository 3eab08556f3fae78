/** Roads by class, paths and tracks, pipes and power lines. */
import type { SegmentRow } from "./api.js";
import type { Colors } from "./colors.js";

type Layer = "roads" | "water" | "power";

interface LineStyle {
  readonly layer: Layer;
  readonly color: Exclude<keyof Colors, "hill" | "water">;
  readonly widthMeters: number;
  /** Narrower than this a line is hard to see from afar. */
  readonly minPixels: number;
}

const LINE_STYLES = {
  path: { layer: "roads", color: "path", widthMeters: 4, minPixels: 1 },
  track: { layer: "roads", color: "track", widthMeters: 6, minPixels: 1.5 },
  small: { layer: "roads", color: "smallRoad", widthMeters: 12, minPixels: 1.5 },
  medium: { layer: "roads", color: "mediumRoad", widthMeters: 22, minPixels: 2 },
  large: { layer: "roads", color: "largeRoad", widthMeters: 28, minPixels: 2.5 },
  highway: { layer: "roads", color: "highway", widthMeters: 18, minPixels: 2.5 },
  water: { layer: "water", color: "waterPipe", widthMeters: 4, minPixels: 2 },
  power: { layer: "power", color: "powerLine", widthMeters: 4, minPixels: 2 },
} satisfies Record<string, LineStyle>;

type LineClass = keyof typeof LINE_STYLES;

/** Draws one layer, lesser classes first. The context is in metres. */
export function drawNetworks(
  context: CanvasRenderingContext2D,
  layer: Layer,
  segments: readonly SegmentRow[],
  colors: Colors,
  pixelsPerMeter: number,
): void {
  const byClass = Map.groupBy(segments, classOf);
  context.lineCap = "round";
  for (const [name, style] of Object.entries(LINE_STYLES)) {
    if (style.layer !== layer) continue;
    context.beginPath();
    for (const { start, end } of byClass.get(name as LineClass) ?? []) {
      context.moveTo(start.x, start.z);
      context.lineTo(end.x, end.z);
    }
    context.strokeStyle = colors[style.color];
    context.lineWidth = Math.max(style.widthMeters, style.minPixels / pixelsPerMeter);
    context.stroke();
  }
}

/** The class of a road stands in the name of its prefab. */
function classOf({ service, prefab }: SegmentRow): LineClass {
  if (service === "Water") return "water";
  if (service === "Electricity") return "power";
  if (service === "PublicTransport") return "track";
  if (service !== "Road") return "path";
  if (prefab.startsWith("Highway")) return "highway";
  if (prefab.startsWith("Large")) return "large";
  return prefab.startsWith("Medium") ? "medium" : "small";
}

export function isHighway(segment: SegmentRow): boolean {
  return classOf(segment) === "highway";
}
