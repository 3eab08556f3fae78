/** The part of the form that works on a source recording. Loaded with the first recording. */
import { useEffect, useState } from "preact/hooks";
import type { Parameters } from "./api.js";
import { Button } from "./button.js";
import { Description } from "./description.js";
import { describe, recordingKey } from "./descriptions.js";
import { type Draft, taskTypeOf, withTaskType, withValues } from "./draft.js";
import { NumberField, SelectField, TextField } from "./fields.js";
import { t } from "./language.js";
import type { Attempt } from "./part.js";
import { recordingTasks } from "./recording-tasks.js";
import { Wave } from "./wave.js";
import { RepaintWindows } from "./windows.js";
import { formatTime, roundToTenths, type TimeRange } from "./words.js";

const STEMS =
  "vocals backing_vocals drums bass guitar keyboard strings synth percussion brass woodwinds fx".split(" ");

/**
 * An extension adds EXTENSION_SECONDS, and renders the adjacent OVERLAP_SECONDS again for a smooth
 * transition.
 */
const EXTENSION_SECONDS = 10;
const OVERLAP_SECONDS = 1;

export interface RecordingTaskProps {
  draft: Draft;
  onChange: (draft: Draft) => void;
  attempt: Attempt;
  onUseDescription: (values: Parameters) => void;
}

export function RecordingTask({ draft, onChange, attempt, onUseDescription }: RecordingTaskProps) {
  const { values, files, sourceName } = draft;
  const [length, setLength] = useState(0);
  const task = taskTypeOf(draft);
  const set = (change: Parameters) => onChange(withValues(draft, change));
  const fields = { values, set };
  const url = useSourceUrl(files.src_audio, values.src_audio_path);
  const window = { start: Number(values.repainting_start ?? 0), end: Number(values.repainting_end ?? 0) };
  const setWindow = ({ start, end }: TimeRange) => set({ repainting_start: start, repainting_end: end });
  const name = sourceName || t("recording");
  const recording = recordingKey(values.src_audio_path, files.src_audio);
  const drop = () => {
    const unset = { src_audio_path: null, task_type: null, repainting_start: null, repainting_end: null };
    const { src_audio: _, ...others } = files;
    onChange({ ...withValues(draft, unset), files: others, sourceName: "" });
  };
  return (
    <fieldset class="source">
      <legend>{t("Recording")}</legend>
      <div class="row">
        <strong class={files.src_audio === undefined ? "name" : "name file"}>{name}</strong>
        <Button
          onClick={() => {
            const { src_audio } = files;
            const { src_audio_path } = values;
            const sent = src_audio === undefined ? {} : { src_audio };
            void attempt(() => describe(recording, name, { src_audio_path }, sent));
          }}
          title={t("Tempo, key, language and style")}
          aria-label={t("Describe {name}", { name })}
        >
          {t("Describe")}
        </Button>
        <Button class="plain" onClick={drop}>
          {t("Remove")}
        </Button>
      </div>
      <Description recording={recording} name={name} onUse={onUseDescription} />
      {url !== "" && (
        <Wave
          url={url}
          label={t("Recording")}
          onLength={setLength}
          {...(task === "repaint" && { window, onWindow: setWindow })}
        />
      )}
      <div class="grid">
        <SelectField
          label={t("What to do")}
          name="task_type"
          placeholder=""
          options={Object.entries(recordingTasks()).map(([name, words]): [string, string] => [
            name,
            words.name,
          ])}
          values={{ task_type: task }}
          set={({ task_type: chosen }) => onChange(withTaskType(draft, String(chosen)))}
        />
        {task === "cover" && (
          <NumberField
            label={t("Closeness to the original")}
            name="audio_cover_strength"
            min={0}
            max={1}
            step={0.05}
            placeholder="1"
            {...fields}
          />
        )}
        {task === "repaint" && (
          <>
            <NumberField
              label={t("From")}
              unit="s"
              name="repainting_start"
              step={0.1}
              placeholder="0"
              {...fields}
            />
            <NumberField
              label={t("To")}
              unit="s"
              name="repainting_end"
              min={values.repainting_end === -1 ? -1 : Number((window.start + 0.1).toFixed(1))}
              step={0.1}
              placeholder={t("end")}
              {...fields}
            />
            <div class="row wide">
              <Button onClick={() => setWindow({ start: -EXTENSION_SECONDS, end: OVERLAP_SECONDS })}>
                {t("Extend the beginning")}
              </Button>
              <Button
                disabled={length === 0}
                onClick={() =>
                  setWindow({
                    start: roundToTenths(length - OVERLAP_SECONDS),
                    end: roundToTenths(length + EXTENSION_SECONDS),
                  })
                }
              >
                {t("Extend the end")}
              </Button>
            </div>
            <RepaintWindows values={values} window={window} set={set} />
          </>
        )}
        {(task === "lego" || task === "extract") && (
          <SelectField
            label={t("Stem")}
            name="track_name"
            placeholder={t("Choose")}
            options={STEMS}
            {...fields}
          />
        )}
        {task === "complete" && (
          <TextField
            label={t("Stems to add")}
            name="track_classes"
            placeholder="drums, bass"
            values={values}
            set={(change) => set({ track_classes: String(change.track_classes).split(/,\s*/) })}
          />
        )}
      </div>
      <p class="faint">
        {recordingTasks()[task]?.help}{" "}
        {task === "repaint" && effectOf(window, length, values.repainting_windows !== undefined)}
      </p>
    </fieldset>
  );
}

/**
 * Text for the user: what a repaint of this window does to a recording.
 * @param length seconds of the recording; 0: not known
 * @param hasOthers whether other windows are repainted, too
 */
function effectOf({ start, end }: TimeRange, length: number, hasOthers: boolean): string {
  if (start === 0 && end <= 0) return hasOthers ? "" : t("Without a part, the whole recording is replaced.");
  if (length === 0) return "";
  const until = end > 0 ? end : length;
  const [first, last] = [Math.max(0, start), Math.min(length, until)];
  const repainted =
    last > first ? [t("replaces {from} to {to}", { from: formatTime(first), to: formatTime(last) })] : [];
  const ahead = start < 0 ? [t("adds {count} s before it", { count: roundToTenths(-start) })] : [];
  const behind =
    until > length ? [t("adds {count} s after it", { count: roundToTenths(until - length) })] : [];
  const words = [...ahead, ...repainted, ...behind].join(", ");
  return words === "" ? "" : `${words[0]?.toUpperCase()}${words.slice(1)}.`;
}

/** URL of a song or of an uploaded recording on the server; "" for any other path. */
function addressOf(path: string): string {
  if (path.startsWith("upload:")) return `/v1/audio?path=${encodeURIComponent(path)}`;
  return path.startsWith("/v1/audio") ? path : "";
}

/** URL of the source recording: a local file, an uploaded recording or a song. */
function useSourceUrl(file: File | undefined, path: unknown): string {
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (file === undefined) {
      setUrl(typeof path === "string" ? addressOf(path) : "");
      return;
    }
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file, path]);
  return url;
}
