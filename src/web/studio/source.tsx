/** The recording that a task works on: dropped, chosen, or a song of the library; and what to do with it. */
import { useEffect, useState } from "preact/hooks";
import { type Parameters, withKey } from "./api.js";
import { type Draft, hasSource, withValues } from "./draft.js";
import { NumberField, SelectField, TextField } from "./fields.js";
import { Wave, type Window } from "./wave.js";

const TASKS: Record<string, { name: string; help: string }> = {
  cover: { name: "Cover", help: "The same song in another sound: describe it above." },
  repaint: {
    name: "Repaint or extend",
    help: "Drag over the part to make anew. Times outside the recording extend it.",
  },
  lego: { name: "Add a stem", help: "Lays one more instrument over the recording." },
  extract: { name: "Extract a stem", help: "Takes one instrument or voice out of the recording." },
  complete: { name: "Complete", help: "Plays a band around a single stem." },
};
const STEMS =
  "vocals backing_vocals drums bass guitar keyboard strings synth percussion brass woodwinds fx".split(" ");

interface SourceProps {
  draft: Draft;
  onChange: (draft: Draft) => void;
}

export function Source({ draft, onChange }: SourceProps) {
  const [isOver, setOver] = useState(false);
  const take = (file: File | undefined) => {
    if (file === undefined) return;
    const { src_audio_path: _, ...values } = draft.values;
    const task =
      values.task_type === undefined || values.task_type === "text2music" ? "cover" : values.task_type;
    onChange({ values: { ...values, task_type: task }, files: { src_audio: file }, sourceName: file.name });
  };
  if (hasSource(draft)) return <Work draft={draft} onChange={onChange} />;
  return (
    <label
      id="source"
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
        aria-label="Recording to work on"
        onChange={(event) => take(event.currentTarget.files?.[0])}
      />
      Drop a recording to cover, repaint or extend it, or <span class="link">choose a file</span>
    </label>
  );
}

function Work({ draft, onChange }: SourceProps) {
  const { values, files, sourceName } = draft;
  const task = String(values.task_type ?? "cover");
  const set = (change: Parameters) => onChange(withValues(draft, change));
  const url = useSourceUrl(files.src_audio, values.src_audio_path);
  const window = { start: Number(values.repainting_start ?? 0), end: Number(values.repainting_end ?? 0) };
  const drop = () => {
    const { src_audio_path: _, task_type: __, repainting_start: ___, repainting_end: ____, ...rest } = values;
    onChange({ values: rest, files: {}, sourceName: "" });
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
          {...(task === "repaint" && {
            window,
            onWindow: ({ start, end }: Window) => set({ repainting_start: start, repainting_end: end }),
          })}
        />
      )}
      <div class="grid">
        <SelectField
          label="What to do"
          name="task_type"
          open="Choose"
          options={Object.entries(TASKS).map(([name, words]): [string, string] => [name, words.name])}
          values={values}
          set={set}
        />
        {task === "cover" && (
          <NumberField
            label="Likeness"
            name="audio_cover_strength"
            min={0}
            max={1}
            step={0.05}
            open="1"
            values={values}
            set={set}
          />
        )}
        {task === "repaint" && (
          <>
            <NumberField
              label="From"
              unit="s"
              name="repainting_start"
              step={0.1}
              open="0"
              values={values}
              set={set}
            />
            <NumberField
              label="To"
              unit="s"
              name="repainting_end"
              step={0.1}
              open="end"
              values={values}
              set={set}
            />
          </>
        )}
        {(task === "lego" || task === "extract") && (
          <SelectField
            label="Stem"
            name="track_name"
            open="Choose"
            options={STEMS}
            values={values}
            set={set}
          />
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
      <p class="faint">{TASKS[task]?.help}</p>
    </fieldset>
  );
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
