/** The lyrics field: words, section tags, a switch for instrumental songs. */
import { useRef } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";
import { LYRICS_CHARACTERS_READ, MAX_LYRICS_CHARACTERS, TextLength } from "./text-length.js";

/** Lyrics of a song without vocals. */
export const NO_VOCALS = "[Instrumental]";

const SECTIONS = ["Intro", "Verse", "Pre-Chorus", "Chorus", "Bridge", "Solo", "Outro"];

interface LyricsProps {
  value: string;
  onChange: (lyrics: string) => void;
}

export function Lyrics({ value, onChange }: LyricsProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const words = useRef("");
  const isInstrumental = value === NO_VOCALS;
  /** Inserts text as if typed, so that the browser can undo it. */
  const insert = (section: string) => {
    const field = area.current;
    if (field === null) return;
    const before = value.slice(0, field.selectionStart).trimEnd();
    const after = value.slice(field.selectionStart).trimStart();
    field.focus();
    field.setSelectionRange(before.length, value.length - after.length);
    document.execCommand("insertText", false, `${before === "" ? "" : "\n\n"}[${section}]\n`);
  };
  /** Switches between instrumental and sung. Switching back to sung restores the lyrics. */
  const toggle = () => {
    if (!isInstrumental) words.current = value;
    onChange(isInstrumental ? words.current : NO_VOCALS);
  };
  return (
    <div class="field">
      <div class="row">
        <label for="lyrics">{t("Lyrics")}</label>
        <label class="switch end">
          <input
            type="checkbox"
            role="switch"
            aria-checked={isInstrumental}
            checked={isInstrumental}
            onChange={toggle}
          />
          {t("Instrumental")}
        </label>
      </div>
      <textarea
        id="lyrics"
        dir="auto"
        ref={area}
        rows={isInstrumental ? 1 : 4}
        disabled={isInstrumental}
        aria-describedby="lyrics-length"
        placeholder={isInstrumental ? t("No vocals") : t("Words to sing. Empty: instrumental")}
        value={isInstrumental ? "" : value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {!isInstrumental && (
        <div class="tags" role="toolbar" aria-label={t("Insert a section")}>
          {SECTIONS.map((section) => (
            <Button class="tag" key={section} onClick={() => insert(section)}>
              {section}
            </Button>
          ))}
        </div>
      )}
      <TextLength id="lyrics-length" text={value} max={MAX_LYRICS_CHARACTERS} used={LYRICS_CHARACTERS_READ} />
    </div>
  );
}
