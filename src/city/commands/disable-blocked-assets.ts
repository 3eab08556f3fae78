import { z } from "zod";
import { BROKEN_ASSET_PREFAB } from "../simulation/catalogue/building-prefabs.js";
import { defineCommand } from "./command.js";

export const disableBlockedAssets = defineCommand({
  path: "/commands/disable-blocked-assets",
  summary: "Disables the game's broken assets `Block Services - ...`.",
  label: () => "Disable blocked assets",
  fields: z.object({}),
  act: ({ world }) => {
    const wasEnabled = world.blockedAssetEnabled;
    world.blockedAssetEnabled = false;
    const { name } = BROKEN_ASSET_PREFAB;
    return [
      {
        package: "Block Services",
        name,
        fullName: `Block Services.${name}`,
        path: "embedded:Block Services.crp",
        wasEnabled,
        isEnabled: false,
      },
    ];
  },
  reply: (assets) => {
    const disabled = assets.filter(({ wasEnabled, isEnabled }) => wasEnabled && !isEnabled).length;
    const message = `${disabled} of ${assets.length} assets disabled.`;
    return { ok: true, dryRun: false, message, total: assets.length, disabled, assets };
  },
});
