/** Chips below the prompt: values that the page filled in, and styles that are on. A press removes them. */
import { useEffect } from "preact/hooks";
import { type AdapterStatus, type ModelInventory, type Parameters, patient } from "./api.js";
import { Button, RoundButton } from "./button.js";
import { type Draft, usedFilled } from "./draft.js";
import { useEndpoint } from "./endpoint.js";
import { language, t } from "./language.js";
import type { Attempt } from "./part.js";
import { useStore } from "./store.js";
import {
  ADAPTER_STATUS,
  activeStyles,
  forgetStyle,
  type LostStyle,
  lostStyles,
  reloadStyle,
  showStyles,
} from "./styles.js";
import { formatTime } from "./words.js";

interface FilledChipsProps {
  draft: Draft;
  set: (change: Parameters) => void;
}

export function FilledChips({ draft, set }: FilledChipsProps) {
  const used = usedFilled(draft);
  if (used.length === 0) return null;
  return (
    <fieldset class="tags filled" aria-label={t("Filled in for you")}>
      {used.map((name) => (
        <Chip key={name} words={wordsOf(name, draft.values[name])} onRemove={() => set({ [name]: null })} />
      ))}
    </fieldset>
  );
}

/** Styles that every song of the default model gets. */
export function StyleChips({ values, attempt }: { values: Parameters; attempt: Attempt }) {
  const [status] = useEndpoint<AdapterStatus>(ADAPTER_STATUS);
  const [inventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const isDefault = values.model === undefined || values.model === inventory?.default_model;
  const lost = useStore(lostStyles);
  const isUsed = isDefault && values.loras === undefined;
  useEffect(() => showStyles(status, isUsed), [status, isUsed]);
  if (status === null || !isUsed) return null;
  const active = activeStyles(status);
  return (
    <>
      {active.length > 0 && (
        <fieldset class="tags styles" aria-label={t("Styles that are on")}>
          {active.map((name) => (
            <Chip
              key={name}
              words={t("Style: {name}", { name })}
              onRemove={() =>
                void attempt(
                  () => patient.call("POST", "/v1/lora/toggle", { use_lora: false, adapter_name: name }),
                  t("The style {name} is off.", { name }),
                )
              }
            />
          ))}
        </fieldset>
      )}
      <div role="status">
        {lost.map((style) => (
          <Lost key={style.name} style={style} attempt={attempt} />
        ))}
      </div>
    </>
  );
}

function Lost({ style, attempt }: { style: LostStyle; attempt: Attempt }) {
  return (
    <div class="row">
      <span class="failed">{t("The style {name} is no longer loaded.", { name: style.name })}</span>
      <Button onClick={() => void attempt(() => reloadStyle(style), t("The adapter is loaded."))}>
        {t("Load it again")}
      </Button>
      <RoundButton label={t("Close message")} onClick={() => forgetStyle(style.name)}>
        ✕
      </RoundButton>
    </div>
  );
}

function Chip({ words, onRemove }: { words: string; onRemove: () => void }) {
  return (
    <Button class="tag" aria-label={t("Remove {name}", { name: words })} onClick={onRemove}>
      {words} ✕
    </Button>
  );
}

function wordsOf(name: string, value: unknown): string {
  switch (name) {
    case "bpm":
      return `${value} BPM`;
    case "audio_duration":
      return formatTime(Number(value));
    case "time_signature":
      return `${value}/${value === "6" ? 8 : 4}`;
    case "vocal_language":
      return new Intl.DisplayNames([language()], { type: "language" }).of(String(value)) ?? String(value);
    default:
      return String(value);
  }
}
