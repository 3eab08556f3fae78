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

/** Flag names in bit order, as one text. */
export function flagText(flags: number): string {
  return flagNames(flags).join(", ");
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
