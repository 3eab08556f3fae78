import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { FLAG, flagText } from "../terms.js";
import { fieldText, flag, number } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireBuilding } from "./requirements.js";

export const setBuildingEmptying = defineCommand({
  path: "/commands/set-building-emptying",
  summary: "Starts or stops emptying a landfill or cemetery. While it is emptied, it accepts nothing.",
  label: ({ id }) => `Set building emptying #${fieldText(id, "0")}`,
  fields: z.object({ id: number(0), emptying: flag(true) }),
  act: (world, { id, emptying }) => {
    const building = requireBuilding(world, id);
    const { prefab, flags } = building;
    if (prefab.civic?.storage === undefined) {
      throw new RefusedError(`Building ${id}, a ${prefab.displayName}, has no storage to empty`);
    }
    building.flags = emptying ? flags | FLAG.Downgrading : flags & ~FLAG.Downgrading;
    const message = `Building ${id} ${emptying ? "is being emptied" : "is no longer being emptied"}.`;
    return { message, id, emptying, prefab: prefab.name, afterFlags: flagText(building.flags) };
  },
});
