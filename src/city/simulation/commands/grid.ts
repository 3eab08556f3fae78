/** The geometry of a grid of streets, and which of its blocks get which zone. */
import type { BuildNeighborhood, GridShape, Placement } from "../../composites.js";
import type { GroundPoint } from "../../game.js";
import { type Box, boundsOf } from "../../geometry.js";

export interface Grid {
  /** Row by row, (columns + 1) x (rows + 1). */
  readonly crossings: readonly GroundPoint[];
  /** Indexes of crossings that a street joins: all rows, then all columns. */
  readonly streets: readonly (readonly [number, number])[];
  /** Row by row. */
  readonly blockCenters: readonly GroundPoint[];
  readonly bounds: Box;
}

export function gridFrom(origin: GroundPoint, shape: GridShape): Grid {
  const { columns, rows, spacing } = shape;
  const across = columns + 1;
  const placed = (column: number, row: number) => {
    const turned = turn({ x: column * spacing, z: row * spacing }, shape.rotationDegrees);
    return { x: origin.x + turned.x, z: origin.z + turned.z };
  };
  const crossings = cellsOf(across, rows + 1).map(([column, row]) => placed(column, row));
  const alongRows = cellsOf(columns, rows + 1).map(([column, row]) => {
    return [row * across + column, row * across + column + 1] as const;
  });
  const alongColumns = cellsOf(across, rows).map(([column, row]) => {
    return [row * across + column, (row + 1) * across + column] as const;
  });
  return {
    crossings,
    streets: [...alongRows, ...alongColumns],
    blockCenters: cellsOf(columns, rows).map(([column, row]) => placed(column + 0.5, row + 0.5)),
    bounds: boundsOf(crossings),
  };
}

/** The grid whose middle lies at a place. */
export function gridAround(center: GroundPoint, shape: GridShape): Grid {
  const half = turn(
    { x: (shape.columns * shape.spacing) / 2, z: (shape.rows * shape.spacing) / 2 },
    shape.rotationDegrees,
  );
  return gridFrom({ x: center.x - half.x, z: center.z - half.z }, shape);
}

function turn({ x, z }: GroundPoint, degrees: number): GroundPoint {
  const angle = (degrees * Math.PI) / 180;
  return { x: x * Math.cos(angle) + z * Math.sin(angle), z: -x * Math.sin(angle) + z * Math.cos(angle) };
}

/** Column and row of each cell, row by row. */
function cellsOf(columns: number, rows: number): [number, number][] {
  return Array.from({ length: columns * rows }, (_, i) => [i % columns, Math.floor(i / columns)]);
}

type Part = "corner" | "edge" | "interior";

const PLACEMENT_ORDER: Readonly<Record<Placement, readonly Part[]>> = {
  perimeter: ["edge", "corner", "interior"],
  core: ["interior", "edge", "corner"],
  corners: ["corner", "edge", "interior"],
};

/** The zone of each block: the heaviest is the background, each lighter one takes its share in the given order. */
export function zonesOfBlocks({ columns, rows, zoneMix, placement }: BuildNeighborhood): string[] {
  const [background, ...lighter] = Object.entries(zoneMix).sort(([, a], [, b]) => b - a);
  const sum = Object.values(zoneMix).reduce((all, weight) => all + weight, 0);
  const zones = Array.from({ length: columns * rows }, () => background?.[0] ?? "");
  const cells = cellsOf(columns, rows);
  const free = PLACEMENT_ORDER[placement].flatMap((part) =>
    [...cells.keys()].filter((i) => partOf(cells[i] as [number, number], columns, rows) === part),
  );
  for (const [zone, weight] of lighter) {
    for (const index of free.splice(0, Math.round((weight / sum) * zones.length))) zones[index] = zone;
  }
  return zones;
}

function partOf([column, row]: [number, number], columns: number, rows: number): Part {
  const ends = Number(column === 0 || column === columns - 1) + Number(row === 0 || row === rows - 1);
  return ends === 2 ? "corner" : ends === 1 ? "edge" : "interior";
}
