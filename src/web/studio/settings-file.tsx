/** Settings files: JSON files that recreate a song with the same lyrics, settings and seeds. */
import type { Parameters, Task } from "./api.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { songName } from "./song.js";

const TYPE = "carillon-song";

export function SaveSettings({ task }: { task: Task }) {
  const json = JSON.stringify({ type: TYPE, title: songName(task), parameters: task.parameters }, null, 2);
  return (
    <a
      class="button"
      href={`data:application/json;charset=utf-8,${encodeURIComponent(json)}`}
      download={`${songName(task)}.json`}
      title={t("Open this file in the form to make the same song again")}
    >
      <Icon name="save" />
      {t("Save settings")}
    </a>
  );
}

export function isSettingsFile({ name }: File): boolean {
  return name.toLowerCase().endsWith(".json");
}

/** @throws Error with a text for the user if the file is not a settings file */
export async function readSettings(file: File): Promise<Parameters> {
  const settings = readJson(await file.text());
  if (settings?.type === TYPE && typeof settings.parameters === "object" && settings.parameters !== null) {
    return settings.parameters as Parameters;
  }
  throw new Error(t("{name} is not a settings file of a song.", { name: file.name }));
}

function readJson(text: string): { type?: unknown; parameters?: unknown } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function OpenSettings({ onFile }: { onFile: (file: File) => void }) {
  return (
    <label class="button">
      <input
        type="file"
        class="hidden"
        accept=".json,application/json"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          // Clear the input, so that the same file can be chosen again.
          event.currentTarget.value = "";
          if (file !== undefined) onFile(file);
        }}
      />
      {t("Open settings")}
    </label>
  );
}
