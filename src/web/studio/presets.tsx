/** Presets: settings of the form under a name, kept in this browser. */
import { useState } from "preact/hooks";
import type { Parameters } from "./api.js";
import { Button, RoundButton } from "./button.js";
import { type Draft, SONG_PARAMETERS, withValues } from "./draft.js";
import { Group } from "./fields.js";
import { isFields, keepText, readEntries } from "./kept.js";
import { t } from "./language.js";
import { OpenSettings } from "./settings-file.js";
import type { DraftChange } from "./undo.js";

type Presets = Readonly<Record<string, Parameters>>;

const ITEM = "carillon-presets";

const loadPresets = () => readEntries(ITEM, isFields);

/** Settings of a draft, without SONG_PARAMETERS. */
function settingsOf({ values }: Draft): Parameters {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !SONG_PARAMETERS.has(name)));
}

/** Returns the draft with the settings of a preset instead of its own settings. */
function withPreset(draft: Draft, preset: Parameters): Draft {
  const own = Object.keys(settingsOf(draft)).map((name) => [name, null]);
  return withValues(draft, { ...Object.fromEntries(own), ...preset });
}

interface PresetsProps {
  draft: Draft;
  onReplace: (change: DraftChange, done: string) => void;
  onSettingsFile: (file: File) => void;
}

export function PresetsGroup({ draft, onReplace, onSettingsFile }: PresetsProps) {
  const [presets, setPresets] = useState(loadPresets);
  const [name, setName] = useState("");
  const keep = (next: Presets) => {
    keepText(ITEM, JSON.stringify(next));
    setPresets(next);
  };
  const save = () => {
    if (name.trim() === "") return;
    keep({ ...loadPresets(), [name.trim()]: settingsOf(draft) });
    setName("");
  };
  const names = Object.keys(presets).sort((one, other) => one.localeCompare(other));
  return (
    <Group icon="star" title={t("Presets")} summary={names.length > 0 ? String(names.length) : ""}>
      <div class="row">
        {names.map((each) => (
          <span class="preset" key={each}>
            <Button
              dir="auto"
              onClick={() =>
                onReplace(
                  (now) => withPreset(now, presets[each] ?? {}),
                  t("Preset {name} is applied.", { name: each }),
                )
              }
            >
              {each}
            </Button>
            <RoundButton
              label={t("Delete the preset {name}", { name: each })}
              onClick={() => {
                const { [each]: _, ...others } = loadPresets();
                keep(others);
                document.getElementById("preset-name")?.focus();
              }}
            >
              ✕
            </RoundButton>
          </span>
        ))}
      </div>
      <div class="row">
        <input
          id="preset-name"
          dir="auto"
          maxLength={40}
          aria-label={t("Name of the preset")}
          placeholder={t("Name, such as Fast drafts")}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            event.stopPropagation();
            save();
          }}
        />
        <Button disabled={name.trim() === ""} onClick={save}>
          {t("Save as preset")}
        </Button>
        <OpenSettings onFile={onSettingsFile} />
      </div>
    </Group>
  );
}
