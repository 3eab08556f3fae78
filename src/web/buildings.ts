/**
 * Draws buildings on the map: as footprints when zoomed out; with roofs, heights and trees when zoomed in. Units of
 * the canvas are metres, and y points to the north.
 */
import { CELL_METERS } from "../city/geometry.js";
import type { BuildingRow, Place } from "./api.js";
import { type Colors, serviceStyle } from "./colors.js";

const SHRINK_METERS = 1.5;
const INACTIVE_OPACITY = 0.5;
/** Distance from the ground floor north to the roof in the drawing, as a share of the building's height. */
const LEAN = 0.35;
const SHADOW_LEAN = 0.5;
const RIDGE_SHADE = "#00000030";
const ROOF_LIGHT = "#ffffff30";
const WALL_SHADE = "#00000060";
const CROWN = "#3d7a35";
const LIT_WINDOW = "#ffd97a";

export type ColorOf = (building: BuildingRow) => string;

/** Draws buildings as rectangles; inactive ones are pale. */
export function drawFootprints(
  context: CanvasRenderingContext2D,
  buildings: readonly BuildingRow[],
  colorOf: ColorOf,
  outline: string,
): void {
  context.strokeStyle = outline;
  context.lineWidth = 1;
  for (const building of buildings) {
    const { width, length } = sizeOf(building);
    onGround(context, building, 0, 0, () => {
      context.fillStyle = colorOf(building);
      context.fillRect(-width / 2, -length / 2, width, length);
      context.strokeRect(-width / 2, -length / 2, width, length);
    });
  }
}

/**
 * Draws buildings with roofs, heights and trees.
 * @param darkness 0 by day, 1 at midnight; above 0.5 windows are lit
 */
export function drawDetailedBuildings(
  context: CanvasRenderingContext2D,
  buildings: readonly BuildingRow[],
  colorOf: ColorOf,
  palette: Colors,
  darkness: number,
): void {
  // Paint northern buildings first, because southern ones stand in front of them.
  for (const building of buildings.toSorted((a, b) => b.position.z - a.position.z)) {
    const height = heightOf(building);
    const { width, length } = sizeOf(building);
    const fill = (color: string) => {
      context.fillStyle = color;
      context.fillRect(-width / 2, -length / 2, width, length);
    };
    onGround(context, building, height * SHADOW_LEAN, -height * SHADOW_LEAN, () => fill(palette.shadow));
    for (let up = 0; up < height * LEAN; up += 1) {
      onGround(context, building, 0, up, () => {
        fill(colorOf(building));
        fill(WALL_SHADE);
      });
    }
    onGround(context, building, 0, height * LEAN, () => {
      fill(colorOf(building));
      drawRoof(context, building, width, length);
      if (darkness > 0.5 && building.active) drawWindows(context, building.id, width, length);
    });
    if (isGreen(building)) drawTrees(context, building);
  }
}

/** Letters or symbols of service buildings. The canvas is in pixels with y downwards. */
export function drawServiceSymbols(
  context: CanvasRenderingContext2D,
  services: readonly BuildingRow[],
  moveTo: (place: Place) => void,
  pixelsPerMeter: number,
  isSolid: boolean,
): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = "#ffffff";
  for (const building of services) {
    const { width, length } = sizeOf(building);
    const pixels = Math.min(Math.min(width, length) * pixelsPerMeter * 0.6, 28);
    if (pixels < 7) continue;
    const lift = isSolid ? heightOf(building) * LEAN : 0;
    moveTo({ x: building.position.x, z: building.position.z + lift });
    context.font = `600 ${pixels.toFixed(0)}px system-ui, sans-serif`;
    context.fillText(serviceStyle(building.service).symbol, 0, 0);
  }
}

function drawRoof(
  context: CanvasRenderingContext2D,
  { service, subService }: BuildingRow,
  width: number,
  length: number,
): void {
  context.fillStyle = RIDGE_SHADE;
  if (service === "Residential" && !subService.startsWith("ResidentialHigh")) {
    // A gable roof with one half in shade.
    context.fillRect(-width / 2, -length / 2, width / 2, length);
  } else if (service === "Industrial") {
    // A saw-tooth roof.
    for (let at = -width / 2; at < width / 2; at += 5) context.fillRect(at, -length / 2, 2, length);
  } else {
    // A flat roof with a parapet and a stair head.
    context.strokeStyle = ROOF_LIGHT;
    context.lineWidth = 1.2;
    context.strokeRect(-width / 2 + 1.2, -length / 2 + 1.2, width - 2.4, length - 2.4);
    context.fillRect(width / 8, length / 8, width / 5, length / 5);
  }
}

function drawWindows(context: CanvasRenderingContext2D, seed: number, width: number, length: number): void {
  context.fillStyle = LIT_WINDOW;
  for (let i = 0; i < 5; i++) {
    const x = (chance(seed, i) - 0.5) * (width - 4);
    const z = (chance(seed, i + 9) - 0.5) * (length - 4);
    context.fillRect(x, z, 1.2, 1.2);
  }
}

function isGreen({ service, subService }: BuildingRow): boolean {
  return (
    service === "Beautification" || (service === "Residential" && !subService.startsWith("ResidentialHigh"))
  );
}

function drawTrees(context: CanvasRenderingContext2D, building: BuildingRow): void {
  const { width, length } = sizeOf(building);
  const count = building.service === "Beautification" ? 7 : 2;
  onGround(context, building, 0, 0, () => {
    for (let i = 0; i < count; i++) {
      const x = (i % 2 === 0 ? 0.46 : -0.46) * width;
      const z = (chance(building.id, i) - 0.5) * length;
      context.beginPath();
      context.arc(x, z, 1.6 + chance(building.id, i + 20), 0, 2 * Math.PI);
      context.fillStyle = CROWN;
      context.fill();
    }
  });
}

/** Calls `draw` with the axes along a building's sides and the origin at its middle, moved to the east and north. */
function onGround(
  context: CanvasRenderingContext2D,
  { position, angleDegrees, active }: BuildingRow,
  east: number,
  north: number,
  draw: () => void,
): void {
  context.save();
  context.translate(position.x + east, position.z + north);
  context.rotate((angleDegrees * Math.PI) / 180);
  context.globalAlpha = active ? 1 : INACTIVE_OPACITY;
  draw();
  context.restore();
}

function sizeOf({ width, length }: BuildingRow): { width: number; length: number } {
  return { width: width * CELL_METERS - SHRINK_METERS, length: length * CELL_METERS - SHRINK_METERS };
}

/** Height in metres, estimated from density and level: the bridge does not report heights. */
function heightOf({ id, service, subService, level }: BuildingRow): number {
  const grade = Number(level.replace(/\D/g, "")) || 1;
  if (service === "Beautification") return 0;
  if (/High|Office/.test(subService) || service === "Office") return 12 + 6 * grade + 6 * chance(id, 1);
  return 4 + 2 * grade + 2 * chance(id, 1);
}

/** Pseudo-random number from 0 to 1, always the same for the same arguments. */
function chance(seed: number, turn: number): number {
  const mixed = Math.imul(seed * 31 + turn, 0x9e3779b1) >>> 0;
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
}
