/** The song form: prompt and lyrics first, other parameters in disclosures. */
import { useState } from "preact/hooks";
import { AdvancedFields } from "./advanced.js";
import { type ModelInventory, type Parameters, patient, type SongSheet } from "./api.js";
import { Button } from "./button.js";
import { FilledChips, StyleChips } from "./chips.js";
import { CodesField } from "./codes.js";
import {
  clearedDraft,
  type Draft,
  filledDraft,
  hasSource,
  parametersOf,
  usedValues,
  withValues,
} from "./draft.js";
import { useEndpoint } from "./endpoint.js";
import { Group, NumberField, SelectField } from "./fields.js";
import { FORMATS } from "./formats.js";
import { language, t } from "./language.js";
import { queue } from "./live.js";
import { Lyrics, NO_VOCALS } from "./lyrics.js";
import type { Attempt } from "./part.js";
import { PresetsGroup } from "./presets.js";
import { startRadio } from "./radio.js";
import { SingingHint } from "./singing.js";
import { Reference, Source } from "./source.js";
import { useStore } from "./store.js";
import {
  MAX_LYRICS_CHARACTERS,
  MAX_PROMPT_CHARACTERS,
  PROMPT_CHARACTERS_READ,
  TextLength,
} from "./text-length.js";
import type { DraftChange } from "./undo.js";

const KEYS = ["C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"].flatMap((tonic) => [
  `${tonic} major`,
  `${tonic} minor`,
]);
const TIME_SIGNATURES: [string, string][] = [
  ["2", "2/4"],
  ["3", "3/4"],
  ["4", "4/4"],
  ["6", "6/8"],
];
const SUNG_LANGUAGES =
  "ar bn cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk vi yue zh".split(" ");

interface ComposerProps {
  draft: Draft;
  /** Why the service refused the song of the form; "" if it did not. */
  refusal: string;
  onChange: (draft: Draft) => void;
  /** Replaces text of the draft, and offers to undo this. */
  onReplace: (change: DraftChange, done: string) => void;
  /** Submits the draft, with `change` applied. */
  onSubmit: (change?: Parameters) => void;
  onSettingsFile: (file: File) => void;
  onUseDescription: (values: Parameters) => void;
  attempt: Attempt;
}

export function Composer({
  draft,
  refusal,
  onChange,
  onReplace,
  onSubmit,
  onSettingsFile,
  onUseDescription,
  attempt,
}: ComposerProps) {
  const values = usedValues(draft);
  const [inventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const unwritten = whyNoText(inventory);
  const isBusy = useStore(queue).active.length > 0;
  const [isWriting, setWriting] = useState(false);
  const [hint, setHint] = useState("");
  const set = (change: Parameters) => onChange(withValues(draft, change));
  const fields = { values, set };
  const text = (name: string) => String(values[name] ?? "");
  const isInstrumental = text("lyrics") === NO_VOCALS;
  /** Fills the form from the language model or from examples. */
  const write = (path: string, body: object, then: (sheet: Parameters) => void = () => {}) =>
    attempt(async () => {
      setWriting(true);
      try {
        const sheet = await patient.call<SongSheet>("POST", path, body);
        const words = {
          prompt: sheet.caption,
          lyrics: isInstrumental ? NO_VOCALS : sheet.lyrics,
          bpm: sheet.bpm,
          key_scale: sheet.key_scale,
          time_signature: sheet.time_signature,
          audio_duration: sheet.duration,
          vocal_language: sheet.vocal_language === "unknown" ? null : sheet.vocal_language,
        };
        onReplace((now) => filledDraft(now, words), t("The form is filled in."));
        then(words);
      } finally {
        setWriting(false);
      }
    });
  const hasWords = text("prompt").trim() !== "" || (text("lyrics").trim() !== "" && !isInstrumental);
  const isFit =
    text("prompt").length <= MAX_PROMPT_CHARACTERS && text("lyrics").length <= MAX_LYRICS_CHARACTERS;
  const isReady = hasSource(draft) || hasWords;
  const make = () => {
    setHint(isReady ? "" : t("Describe the sound first."));
    if (!isFit) return;
    if (isReady) onSubmit();
    else document.getElementById("prompt")?.focus();
  };

  return (
    <form
      class="composer"
      aria-label={t("New song")}
      onSubmit={(event) => {
        event.preventDefault();
        make();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) make();
      }}
    >
      <div class="field hero">
        <label for="prompt">{t("Sound")}</label>
        <textarea
          id="prompt"
          dir="auto"
          rows={3}
          placeholder={t("Genre, instruments, mood, voice: slow bossa nova, nylon guitar, warm alto")}
          value={text("prompt")}
          aria-describedby="hint prompt-length"
          onInput={(event) => {
            setHint("");
            set({ prompt: event.currentTarget.value });
          }}
        />
        <p id="hint" class="failed" role="status">
          {hint}
        </p>
        <TextLength
          id="prompt-length"
          text={text("prompt")}
          max={MAX_PROMPT_CHARACTERS}
          used={PROMPT_CHARACTERS_READ}
        />
        <FilledChips draft={draft} set={set} />
        <StyleChips values={values} attempt={attempt} />
      </div>
      <OneSentence isWriting={isWriting} isInstrumental={isInstrumental} write={write} onSubmit={onSubmit} />
      <Lyrics value={text("lyrics")} onChange={(lyrics) => set({ lyrics })} />
      <SingingHint lyrics={text("lyrics")} model={text("model")} attempt={attempt} />
      <Chips {...fields} />
      <Source draft={draft} onChange={onChange} attempt={attempt} onUseDescription={onUseDescription} />
      <div class="groups">
        <Group icon="note" title={t("Tempo, key, language")} summary={summaryOf(values)}>
          <div class="grid">
            <NumberField label={t("Tempo")} unit="BPM" name="bpm" min={30} max={300} {...fields} />
            <SelectField label={t("Key")} name="key_scale" options={KEYS} {...fields} />
            <SelectField
              label={t("Time signature")}
              name="time_signature"
              options={TIME_SIGNATURES}
              {...fields}
            />
            <SelectField
              label={t("Language")}
              name="vocal_language"
              options={SUNG_LANGUAGES.map(named)}
              {...fields}
            />
            <SelectField
              label={t("File")}
              name="audio_format"
              options={FORMATS}
              placeholder="mp3"
              {...fields}
            />
            <Check name="thinking" label={t("Plan with the language model")} {...fields} />
            <Check name="get_lrc" label={t("Lyric timestamps")} {...fields} />
          </div>
        </Group>
        <Reference draft={draft} onChange={onChange} />
        {!hasSource(draft) && <CodesField {...fields} />}
        <AdvancedFields {...fields} />
        <PresetsGroup draft={draft} onReplace={onReplace} onSettingsFile={onSettingsFile} />
      </div>
      <p id="unwritten" class="faint">
        {hasWords && unwritten}
      </p>
      <div class="submit">
        <button type="submit" class="main" title={t("Ctrl + Enter")}>
          {isBusy ? t("Add to queue") : t("Make")}
        </button>
        <Button
          disabled={!hasWords || hasSource(draft)}
          title={t("Endless songs of this description")}
          onClick={() => startRadio(parametersOf(draft))}
        >
          {t("Radio")}
        </Button>
        <Button
          disabled={!hasWords || isWriting || unwritten !== ""}
          aria-describedby="unwritten"
          title={t("A language model rewrites sound and lyrics in the way the models understand best")}
          onClick={() => void write("/format_input", { prompt: text("prompt"), lyrics: text("lyrics") })}
        >
          {t("Polish")}
        </Button>
        <Button class="plain" onClick={() => onReplace(clearedDraft, t("The form is empty."))}>
          {t("Clear")}
        </Button>
        <p class="failed" role="status">
          {refusal}
        </p>
      </div>
    </form>
  );
}

/** Why the language model cannot polish a text; "" if it can. */
function whyNoText(inventory: ModelInventory | null): string {
  if (inventory === null) return "";
  const { lm_models: models, loaded_lm_model: loaded } = inventory;
  const model = models.find(({ name }) => name === loaded) ?? models[0];
  if (model === undefined) return t("No language model is installed, so texts cannot be polished.");
  return model.writes_text ? "" : t("{model} writes no text, so it cannot polish.", { model: model.name });
}

interface FieldsProps {
  values: Parameters;
  set: (change: Parameters) => void;
}

/** Most used settings, always visible. */
function Chips(fields: FieldsProps) {
  const [inventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const models = inventory?.models.map(({ name }) => name) ?? [];
  return (
    <div class="chips">
      <NumberField label={t("Length")} unit="s" name="audio_duration" min={10} max={600} {...fields} />
      <NumberField label={t("Versions")} name="batch_size" min={1} max={8} placeholder="2" {...fields} />
      <SelectField label={t("Model")} name="model" options={models} {...fields} />
    </div>
  );
}

function Check({ name, label, values, set }: FieldsProps & { name: string; label: string }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={values[name] === true}
        onChange={(event) => set({ [name]: event.currentTarget.checked })}
      />
      {label}
    </label>
  );
}

interface OneSentenceProps {
  isWriting: boolean;
  isInstrumental: boolean;
  write: (path: string, body: object, then?: (words: Parameters) => void) => void;
  onSubmit: (change: Parameters) => void;
}

function OneSentence({ isWriting, isInstrumental, write, onSubmit }: OneSentenceProps) {
  const [sentence, setSentence] = useState("");
  const isReady = !isWriting && sentence.trim() !== "" && sentence.length <= MAX_PROMPT_CHARACTERS;
  const body = { query: sentence, instrumental: isInstrumental };
  return (
    <div class="field wish">
      <label for="wish">{t("In one sentence")}</label>
      <div class="row">
        <input
          id="wish"
          dir="auto"
          value={sentence}
          placeholder={t("a lullaby about the sea")}
          aria-describedby="wish-length"
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            // Enter makes a song from this sentence. It must not submit the form.
            event.preventDefault();
            event.stopPropagation();
            if (isReady) write("/v1/create_sample", body, onSubmit);
          }}
          onInput={(event) => setSentence(event.currentTarget.value)}
        />
        <Button disabled={!isReady} onClick={() => write("/v1/create_sample", body)}>
          {isWriting ? t("Writing…") : t("Write it")}
        </Button>
        <Button
          disabled={isWriting}
          onClick={() => write("/create_random_sample", {})}
          title={t("Fills the form with an example")}
        >
          {t("Surprise me")}
        </Button>
      </div>
      <TextLength id="wish-length" text={sentence} max={MAX_PROMPT_CHARACTERS} />
    </div>
  );
}

function named(code: string): [string, string] {
  return [code, new Intl.DisplayNames([language()], { type: "language" }).of(code) ?? code];
}

function summaryOf(values: Parameters): string {
  const { bpm, key_scale: key, vocal_language: code } = values;
  const parts = [bpm && `${bpm} BPM`, key, code && named(String(code))[1]].filter(Boolean);
  return parts.length === 0 ? t("automatic") : parts.join(" · ");
}
