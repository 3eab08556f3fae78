import type { CommandRoute } from "../route.js";

/** POST /commands/disable-blocked-assets: switches off the known broken asset family. */
export const disableBlockedAssets: CommandRoute = {
  path: "/commands/disable-blocked-assets",
  label: () => "Disable blocked assets",
  run: (city) => {
    const { assets } = city.apply({ type: "disable-blocked-assets" });
    const disabled = assets.filter(({ wasEnabled, isEnabled }) => wasEnabled && !isEnabled).length;
    const rows = assets.map(({ package: packageName, name, fullName, path, wasEnabled, isEnabled }) => {
      return { package: packageName, name, fullName, path, wasEnabled, isEnabled };
    });
    const message = `${disabled} of ${assets.length} assets disabled.`;
    return { ok: true, dryRun: false, message, total: assets.length, disabled, assets: rows };
  },
};
