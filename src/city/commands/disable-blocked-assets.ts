import { z } from "zod";
import { BROKEN_ASSET_PREFAB } from "../simulation/catalogue/building-prefabs.js";
import { defineCommand } from "./command.js";

export const disableBlockedAssets = defineCommand({
  path: "/commands/disable-blocked-assets",
  summary: "Disables the game's broken assets `Block Services - ...`.",
  label: () => "Disable blocked assets",
  fields: z.object({}),
  act: (world) => {
    const wasEnabled = world.blockedAssetEnabled;
    world.blockedAssetEnabled = false;
    const { name } = BROKEN_ASSET_PREFAB;
    const names = { package: "Block Services", name, fullName: `Block Services.${name}` };
    const asset = { ...names, path: "embedded:Block Services.crp", wasEnabled, isEnabled: false };
    const disabled = wasEnabled ? 1 : 0;
    return { message: `${disabled} of 1 assets disabled.`, total: 1, disabled, assets: [asset] };
  },
});
