/** The recording that a task works on: dropped, chosen, or a song of the library; and what to do with it. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Parameters, withKey } from "./api.js";
import { type Draft, hasSource, withValues } from "./draft.js";
import { NumberField, SelectField, TextField } from "./fields.js";
import { tenths, Wave, type Window } from "./wave.js";
import { clock } from "./words.js";

const TASKS: Record<string, { name: string; help: string }> = {
  cover: { name: "Cover", help: "The same song in another sound: describe it above." },
  repaint: { name: "Repaint or extend", help: "Drag over the part to make anew." },
  lego: { name: "Add a stem", help: "Lays one more instrument over the recording." },
  extract: { name: "Extract a stem", help: "Takes one instrument or voice out of the recording." },
  complete: { name: "Complete", help: "Plays a band around a single stem." },
};
const STEMS =
  "vocals backing_vocals drums bass guitar keyboard strings synth percussion brass woodwinds fx".split(" ");

/** What is added to an end of a song, and how much of it is made anew so that the two belong together. */
const EXTENSION_SECONDS = 10;
const OVERLAP_SECONDS = 1;

interface SourceProps {
  draft: Draft;
  onChange: (draft: Draft) => void;
}

export function Source({ draft, onChange }: SourceProps) {
  if (hasSource(draft)) return <Work draft={draft} onChange={onChange} />;
  const take = (file: File) => {
    const { task_type: task = "text2music" } = draft.values;
    const values = { ...draft.values, task_type: task === "text2music" ? "cover" : task };
    onChange({ values, files: { ...draft.files, src_audio: file }, sourceName: file.name });
  };
  return (
    <Drop id="source" label="Recording to work on" onFile={take}>
      Drop a recording to cover, repaint or extend it, or <span class="link">choose a file</span>
    </Drop>
  );
}

/** A recording whose sound any task may take. */
export function Reference({ draft, onChange }: SourceProps) {
  const { values, files } = draft;
  const name = files.reference_audio?.name ?? values.reference_audio_path;
  const take = (file?: File) => {
    const { reference_audio_path: _, ...others } = values;
    const { reference_audio: __, ...rest } = files;
    onChange({
      ...draft,
      values: others,
      files: file === undefined ? rest : { ...rest, reference_audio: file },
    });
  };
  return (
    <details class="group">
      <summary>
        Sound of a recording <span class="faint">{name === undefined ? "none" : String(name)}</span>
      </summary>
      {name === undefined ? (
        <Drop id="reference" label="Reference recording" onFile={take}>
          Drop a recording that the song shall sound like, or <span class="link">choose a file</span>
        </Drop>
      ) : (
        <button type="button" aria-label={`Remove ${name}`} onClick={() => take()}>
          Remove
        </button>
      )}
    </details>
  );
}

interface DropProps {
  id: string;
  label: string;
  onFile: (file: File) => void;
  children: ComponentChildren;
}

function Drop({ id, label, onFile, children }: DropProps) {
  const [isOver, setOver] = useState(false);
  const take = (file: File | undefined) => file && onFile(file);
  return (
    <label
      id={id}
      class={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files[0]);
      }}
    >
      <input
        type="file"
        class="hidden"
        accept="audio/*,video/*"
        aria-label={label}
        onChange={(event) => take(event.currentTarget.files?.[0])}
      />
      {children}
    </label>
  );
}

function Work({ draft, onChange }: SourceProps) {
  const { values, files, sourceName } = draft;
  const [length, setLength] = useState(0);
  const task = String(values.task_type ?? "cover");
  const set = (change: Parameters) => onChange(withValues(draft, change));
  const fields = { values, set };
  const url = useSourceUrl(files.src_audio, values.src_audio_path);
  const window = { start: Number(values.repainting_start ?? 0), end: Number(values.repainting_end ?? 0) };
  const setWindow = ({ start, end }: Window) => set({ repainting_start: start, repainting_end: end });
  const drop = () => {
    const {
      src_audio_path: _,
      task_type: __,
      repainting_start: ___,
      repainting_end: ____,
      ...others
    } = values;
    const { src_audio: _____, ...rest } = files;
    onChange({ values: others, files: rest, sourceName: "" });
  };
  return (
    <fieldset id="source" class="source">
      <legend>Recording</legend>
      <div class="row">
        <strong class="name">{sourceName || "recording"}</strong>
        <button type="button" class="plain" onClick={drop}>
          Remove
        </button>
      </div>
      {url !== "" && (
        <Wave
          url={url}
          label="Recording"
          onLength={setLength}
          {...(task === "repaint" && { window, onWindow: setWindow })}
        />
      )}
      <div class="grid">
        <SelectField
          label="What to do"
          name="task_type"
          open="Choose"
          options={Object.entries(TASKS).map(([name, words]): [string, string] => [name, words.name])}
          {...fields}
        />
        {task === "cover" && (
          <NumberField
            label="Likeness"
            name="audio_cover_strength"
            min={0}
            max={1}
            step={0.05}
            open="1"
            {...fields}
          />
        )}
        {task === "repaint" && (
          <>
            <NumberField label="From" unit="s" name="repainting_start" step={0.1} open="0" {...fields} />
            <NumberField label="To" unit="s" name="repainting_end" step={0.1} open="end" {...fields} />
            <div class="row wide">
              <button
                type="button"
                onClick={() => setWindow({ start: -EXTENSION_SECONDS, end: OVERLAP_SECONDS })}
              >
                Extend the beginning
              </button>
              <button
                type="button"
                disabled={length === 0}
                onClick={() =>
                  setWindow({
                    start: tenths(length - OVERLAP_SECONDS),
                    end: tenths(length + EXTENSION_SECONDS),
                  })
                }
              >
                Extend the end
              </button>
            </div>
          </>
        )}
        {(task === "lego" || task === "extract") && (
          <SelectField label="Stem" name="track_name" open="Choose" options={STEMS} {...fields} />
        )}
        {task === "complete" && (
          <TextField
            label="Stems to add"
            name="track_classes"
            open="drums, bass"
            values={values}
            set={(change) => set({ track_classes: String(change.track_classes).split(/,\s*/) })}
          />
        )}
      </div>
      <p class="faint">
        {TASKS[task]?.help} {task === "repaint" && length > 0 && effectOf(window, length)}
      </p>
    </fieldset>
  );
}

/** What comes of a window on a recording of so many seconds. */
function effectOf({ start, end }: Window, length: number): string {
  const until = end > 0 ? end : length;
  if (start === 0 && until === length) return "";
  const [first, last] = [Math.max(0, start), Math.min(length, until)];
  const anew = last > first ? [`makes ${clock(first)} to ${clock(last)} anew`] : [];
  const ahead = start < 0 ? [`adds ${tenths(-start)} s ahead of it`] : [];
  const behind = until > length ? [`adds ${tenths(until - length)} s behind it`] : [];
  const words = [...ahead, ...anew, ...behind].join(", ");
  return words === "" ? "" : `${words[0]?.toUpperCase()}${words.slice(1)}.`;
}

/** An address of the recording in this page: of a file of this machine, or of a song. */
function useSourceUrl(file: File | undefined, path: unknown): string {
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (file === undefined) {
      setUrl(typeof path === "string" && path.startsWith("/v1/audio") ? withKey(path) : "");
      return;
    }
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file, path]);
  return url;
}
