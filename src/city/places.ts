/** Places as the bridge writes them. */
import type { Position } from "./game.js";

/** The coordinates alone. */
export function position({ x, y, z }: Position) {
  return { x, y, z };
}

export function middle(start: Position, end: Position): Position {
  return { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2, z: (start.z + end.z) / 2 };
}
