import { z } from "zod";
import { RUIN_FLAGS, setProblem } from "../simulation/fabric/buildings.js";
import { FLAG, flagText } from "../terms.js";
import { fieldText, flag, number } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireBuilding } from "./requirements.js";

export const setBuildingActive = defineCommand({
  path: "/commands/set-building-active",
  summary: "Switches a building on or off. There is no dry run.",
  label: ({ id }) => `Set building active #${fieldText(id, "0")}`,
  fields: z.object({ id: number(0), active: flag(true) }),
  act: (world, { id, active }) => {
    const building = requireBuilding(world, id);
    const before = building.flags;
    const usable = (before & FLAG.Completed) !== 0 && (before & (RUIN_FLAGS | FLAG.Flooded)) === 0;
    building.switchedOff = !active;
    building.flags = active && usable ? before | FLAG.Active : before & ~FLAG.Active;
    setProblem(building, "TurnedOff", building.switchedOff, world.frame);
    return {
      message: `Building ${id} is switched ${active ? "on" : "off"}.`,
      id,
      active,
      prefab: building.prefab.name,
      beforeFlags: flagText(before),
      afterFlags: flagText(building.flags),
    };
  },
});
