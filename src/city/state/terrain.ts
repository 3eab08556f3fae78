import type { ReadRoute } from "../route.js";

/** Coarse, because the whole map is one answer. */
const SPACING_METERS = 96;

/** GET /state/terrain: heights of the ground and depths of water, row by row from the south-west corner. */
export const terrain: ReadRoute = {
  path: "/state/terrain",
  label: "Read terrain",
  read: ({ city }) => {
    const halfSizeMeters = city.mapHalfMeters;
    const samplesPerRow = Math.floor((2 * halfSizeMeters) / SPACING_METERS) + 1;
    const heights: number[] = [];
    const waterDepths: number[] = [];
    for (let row = 0; row < samplesPerRow; row++) {
      for (let column = 0; column < samplesPerRow; column++) {
        const x = column * SPACING_METERS - halfSizeMeters;
        const z = row * SPACING_METERS - halfSizeMeters;
        const ground = city.groundHeight(x, z);
        heights.push(toDecimeter(ground));
        waterDepths.push(toDecimeter(city.surfaceHeight(x, z) - ground));
      }
    }
    return { ok: true, halfSizeMeters, spacingMeters: SPACING_METERS, samplesPerRow, heights, waterDepths };
  },
};

function toDecimeter(meters: number): number {
  return Math.round(meters * 10) / 10;
}
