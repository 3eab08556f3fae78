import { t } from "./language.js";

/** Task types that need a source recording, with name and help text in the user's language. */
export const recordingTasks = (): Record<string, { name: string; help: string }> => ({
  cover: { name: t("Cover"), help: t("The same song in another sound: describe it above.") },
  repaint: { name: t("Repaint or extend"), help: t("Drag over the part to replace.") },
  lego: { name: t("Add a stem"), help: t("Lays one more instrument over the recording.") },
  extract: { name: t("Extract a stem"), help: t("Extracts one instrument or voice as a track of its own.") },
  complete: { name: t("Complete"), help: t("Plays a band around a single stem.") },
});
