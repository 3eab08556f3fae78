import type { ReadRoute } from "../route.js";
import { timestamp } from "./listing.js";

/** GET /state/saves: whole files only, newest first. */
export const saves: ReadRoute = {
  path: "/state/saves",
  label: "List saves",
  read: async ({ game }) => {
    const { directory, saves: files } = await game.listSaves();
    const rows = files.map(({ name, path, lastWriteTimeMs, lengthBytes }) => ({
      name,
      path,
      lastWriteTimeUtc: timestamp(lastWriteTimeMs),
      length: lengthBytes,
    }));
    return { ok: true, directory, saves: rows };
  },
};
