import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { requireFunds } from "../simulation/life/finance.js";
import { postCityMessage } from "../simulation/life/messages.js";
import {
  areaAt,
  areaIndex,
  isBesideOwned,
  MAX_AREAS,
  TILES_PER_SIDE,
  tileCoordinate,
} from "../simulation/state/areas.js";
import { flag, number, optionalNumber } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireWholeWithin } from "./requirements.js";

export const unlockArea = defineCommand({
  path: "/commands/unlock-area",
  summary: "Buys a tile of the map, given by its column and row or by a place in it.",
  label: () => "Unlock area",
  fields: z.object({
    dryRun: flag(false),
    tileX: optionalNumber,
    tileZ: optionalNumber,
    x: number(0),
    z: number(0),
    ignoreMaxAreaCount: flag(false),
  }),
  act: (world, { dryRun, ignoreMaxAreaCount, x, z, ...tile }) => {
    const tileX = tile.tileX ?? tileCoordinate(x);
    const tileZ = tile.tileZ ?? tileCoordinate(z);
    requireWholeWithin("tileX", tileX, 0, TILES_PER_SIDE - 1);
    requireWholeWithin("tileZ", tileZ, 0, TILES_PER_SIDE - 1);
    const index = areaIndex(tileX, tileZ);
    const area = areaAt(world, index);
    if (area.owned) throw refusal(`Area ${tileX}, ${tileZ} is already owned`);
    if (!isBesideOwned(world, index)) throw refusal(`Area ${tileX}, ${tileZ} does not border an owned area`);
    if (world.areas.size >= MAX_AREAS && !ignoreMaxAreaCount) {
      throw new RefusedError(`The city already owns ${MAX_AREAS} areas, its limit`);
    }
    requireFunds(world, area.price, `Area ${tileX}, ${tileZ}`);
    if (!dryRun) {
      world.areas.add(index);
      world.ledger.book("Construction", area.price);
      postCityMessage(world, "CHIRP_NEW_MAP_TILE", "The city has bought new land.");
    }
    const message = `Area ${tileX}, ${tileZ} ${dryRun ? "can be" : "was"} bought for ${area.price}.`;
    return { message, ...areaAt(world, index), price: area.price, maxAreaCount: MAX_AREAS };
  },
});

function refusal(message: string): RefusedError {
  return new RefusedError(message);
}
