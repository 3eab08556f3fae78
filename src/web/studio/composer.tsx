/** What a song is made of: words first, all else behind disclosures. */
import { useRef, useState } from "preact/hooks";
import { Advanced } from "./advanced.js";
import { call, type Parameters, type SongSheet } from "./api.js";
import { CodesField } from "./codes.js";
import { type Draft, EMPTY_DRAFT, hasSource, withValues } from "./draft.js";
import { NumberField, SelectField } from "./fields.js";
import type { Attempt } from "./part.js";
import { Reference, Source } from "./source.js";

const SECTIONS = ["Intro", "Verse", "Pre-Chorus", "Chorus", "Bridge", "Solo", "Outro"];
const KEYS = ["C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"].flatMap((tonic) => [
  `${tonic} major`,
  `${tonic} minor`,
]);
const METRES: [string, string][] = [
  ["2", "2/4"],
  ["3", "3/4"],
  ["4", "4/4"],
  ["6", "6/8"],
];
const LANGUAGES =
  "ar bn cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk vi yue zh".split(" ");
const FORMATS = ["mp3", "flac", "wav", "wav32", "opus", "aac"];

interface ComposerProps {
  draft: Draft;
  onChange: (draft: Draft) => void;
  isBusy: boolean;
  onSubmit: () => void;
  attempt: Attempt;
}

export function Composer({ draft, onChange, isBusy, onSubmit, attempt }: ComposerProps) {
  const { values } = draft;
  const [isWriting, setWriting] = useState(false);
  const set = (change: Parameters) => onChange(withValues(draft, change));
  const fields = { values, set };
  const text = (name: string) => String(values[name] ?? "");
  /** Fills the form with what a language model, or the service's examples, have written. */
  const write = (path: string, body: object) =>
    attempt(async () => {
      setWriting(true);
      try {
        const sheet = await call<SongSheet>("POST", path, body);
        set({
          prompt: sheet.caption,
          lyrics: sheet.lyrics,
          bpm: sheet.bpm,
          key_scale: sheet.key_scale,
          time_signature: sheet.time_signature,
          audio_duration: sheet.duration,
          vocal_language: sheet.vocal_language === "unknown" ? null : sheet.vocal_language,
        });
      } finally {
        setWriting(false);
      }
    });
  const isReady = hasSource(draft) || text("prompt").trim() !== "" || text("lyrics").trim() !== "";

  return (
    <form
      class="composer"
      aria-label="New song"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onSubmit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isReady) onSubmit();
      }}
    >
      <Wish isWriting={isWriting} write={write} />
      <label class="field" for="prompt">
        Sound
        <textarea
          id="prompt"
          rows={3}
          maxLength={4096}
          placeholder="Genre, instruments, mood, voice: slow bossa nova, nylon guitar, warm alto"
          value={text("prompt")}
          onInput={(event) => set({ prompt: event.currentTarget.value })}
        />
      </label>
      <Lyrics value={text("lyrics")} onChange={(lyrics) => set({ lyrics })} />
      <Source draft={draft} onChange={onChange} />
      <details class="group">
        <summary>
          Length, tempo, key <span class="faint">{summaryOf(values)}</span>
        </summary>
        <div class="grid">
          <NumberField label="Length" unit="s" name="audio_duration" min={10} max={600} {...fields} />
          <NumberField label="Tempo" unit="BPM" name="bpm" min={30} max={300} {...fields} />
          <SelectField label="Key" name="key_scale" options={KEYS} {...fields} />
          <SelectField label="Metre" name="time_signature" options={METRES} {...fields} />
          <SelectField label="Language" name="vocal_language" options={LANGUAGES.map(named)} {...fields} />
          <NumberField label="Versions" name="batch_size" min={1} max={8} open="2" {...fields} />
          <SelectField label="File" name="audio_format" options={FORMATS} open="mp3" {...fields} />
          <label class="check">
            <input
              type="checkbox"
              checked={values.thinking === true}
              onChange={(event) => set({ thinking: event.currentTarget.checked })}
            />
            Plan with the language model
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={values.get_lrc === true}
              onChange={(event) => set({ get_lrc: event.currentTarget.checked })}
            />
            Tell when each line is sung
          </label>
        </div>
      </details>
      <Reference draft={draft} onChange={onChange} />
      {!hasSource(draft) && <CodesField {...fields} />}
      <Advanced {...fields} />
      <div class="row submit">
        <button type="submit" class="main" disabled={!isReady} title="Ctrl + Enter">
          {isBusy ? "Add to queue" : "Make"}
        </button>
        <button
          type="button"
          disabled={!isReady || isWriting}
          title="A language model writes sound and lyrics in the form that the models know best"
          onClick={() => void write("/format_input", { prompt: text("prompt"), lyrics: text("lyrics") })}
        >
          Polish
        </button>
        <button type="button" class="plain" onClick={() => onChange(EMPTY_DRAFT)}>
          Clear
        </button>
      </div>
    </form>
  );
}

interface WishProps {
  isWriting: boolean;
  write: (path: string, body: object) => void;
}

function Wish({ isWriting, write }: WishProps) {
  const [wish, setWish] = useState("");
  return (
    <div class="field">
      <label for="wish">In one sentence</label>
      <div class="row">
        <input
          id="wish"
          value={wish}
          maxLength={4096}
          placeholder="a lullaby about the sea"
          onInput={(event) => setWish(event.currentTarget.value)}
        />
        <button
          type="button"
          disabled={isWriting || wish.trim() === ""}
          onClick={() => write("/v1/create_sample", { query: wish })}
        >
          {isWriting ? "Writing…" : "Write it"}
        </button>
        <button
          type="button"
          disabled={isWriting}
          onClick={() => write("/create_random_sample", {})}
          title="Fills the form with an example"
        >
          Surprise me
        </button>
      </div>
    </div>
  );
}

function Lyrics({ value, onChange }: { value: string; onChange: (lyrics: string) => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const insert = (section: string) => {
    const at = area.current?.selectionStart ?? value.length;
    const before = value.slice(0, at).trimEnd();
    const tag = `${before === "" ? "" : "\n\n"}[${section}]\n`;
    onChange(before + tag + value.slice(at).trimStart());
    const caret = before.length + tag.length;
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(caret, caret);
    });
  };
  return (
    <div class="field">
      <label for="lyrics">Lyrics</label>
      <textarea
        id="lyrics"
        ref={area}
        rows={6}
        maxLength={32768}
        placeholder="Empty: instrumental"
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <div class="tags" role="toolbar" aria-label="Insert a section">
        {SECTIONS.map((section) => (
          <button type="button" class="tag" key={section} onClick={() => insert(section)}>
            {section}
          </button>
        ))}
      </div>
    </div>
  );
}

function named(code: string): [string, string] {
  return [code, new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code];
}

function summaryOf(values: Parameters): string {
  const { audio_duration: length, bpm, key_scale: key } = values;
  const parts = [length && `${length} s`, bpm && `${bpm} BPM`, key].filter(Boolean);
  return parts.length === 0 ? "automatic" : parts.join(" · ");
}
