/** When songs are deleted, and how much space they use. */
import { useEffect, useState } from "preact/hooks";
import { carillon, type Retention, type Task } from "./api.js";
import { t } from "./language.js";
import { byteSize } from "./words.js";

const DAY_SECONDS = 86_400;
/**
 * Hook for the space that all songs use, and for the expiry of one. Null before the first response. Reads again when
 * `version` changes, and nothing for version 0.
 */
export function useRetention(id: string | null, version: number): Retention | null {
  const [retention, setRetention] = useState<Retention | null>(null);
  useEffect(() => {
    if (version === 0) return;
    carillon
      .call<Retention>("GET", `/v1/retention${id === null ? "" : `?task_ids=${id}`}`)
      .then(setRetention, () => {});
  }, [id, version]);
  return retention;
}

/** Text about the space used, and when songs are deleted. */
export function retentionText({ bytes, max_bytes: max, max_age_seconds: age }: Retention): string {
  const room =
    max === null
      ? t("{size}. Songs are kept until you delete them.", { size: byteSize(bytes) })
      : t("{size} of {max}. When full, the oldest songs without a star are deleted.", {
          size: byteSize(bytes),
          max: byteSize(max),
        });
  if (age === null) return room;
  return `${room} ${t("Songs without a star are deleted after {count} days.", { count: tenthDays(age) })}`;
}

/** Text that says when a song is deleted. */
export function expiryText({ task_id: id, favorite }: Task, { expiries }: Retention): string {
  if (favorite) return t("Starred: kept until you delete it.");
  const expiry = expiries[id];
  if (expiry === undefined) return t("Kept until you delete it.");
  const { time, after_bytes: room } = expiry;
  const days = time === null ? null : Math.max(0, (time - Date.now() / 1000) / DAY_SECONDS);
  return [
    days === null ? "" : t("Will be deleted in {count} days.", { count: tenthDays(days * DAY_SECONDS) }),
    room === null
      ? ""
      : t("Will be deleted once newer songs take up {size}. Star it to keep it.", { size: byteSize(room) }),
  ]
    .filter((words) => words !== "")
    .join(" ");
}

function tenthDays(seconds: number): number {
  return Math.round((10 * seconds) / DAY_SECONDS) / 10;
}
