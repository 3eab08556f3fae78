/** What the lists of buildings have in common. */
import type { Building } from "../game.js";
import { position } from "../places.js";
import { flagNames } from "../terms.js";
import { countBy, problemText } from "./listing.js";

export function countServices(buildings: readonly Building[]) {
  return {
    countsByService: countBy(buildings, ({ prefab }) => prefab.service),
    countsBySubService: countBy(buildings, ({ prefab }) => `${prefab.service}/${prefab.subService}`),
  };
}

/** Few combinations of flags occur, in thousands of rows. */
const FLAG_TEXTS = new Map<number, string>();

/** Flag names in bit order, as one text. */
export function flagText(flags: number): string {
  const known = FLAG_TEXTS.get(flags);
  if (known !== undefined) return known;
  const text = flagNames(flags).join(", ");
  FLAG_TEXTS.set(flags, text);
  return text;
}

/** How large a building is, where it stands and what is wrong with it: the end of every row. */
export function siteOf(building: Building) {
  const { prefab, angleDegrees, problems } = building;
  return {
    width: prefab.width,
    length: prefab.length,
    angleDegrees,
    problems: problemText(problems),
    position: position(building.position),
  };
}
