/** The source recording (dropped, chosen or from the library) and its task type. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.js";
import { type Draft, hasSource, withSource } from "./draft.js";
import { Group } from "./fields.js";
import { t } from "./language.js";
import { lazy } from "./lazy.js";
import { Recorder } from "./recorder.js";
import type { RecordingTaskProps } from "./recording-task.js";

const RecordingTask = lazy(() => import("./lazy-parts.js").then((module) => module.RecordingTask));

interface SourceProps {
  draft: Draft;
  onChange: (draft: Draft) => void;
}

export function Source(props: RecordingTaskProps) {
  const { draft, onChange } = props;
  if (hasSource(draft)) {
    return (
      <div id="source" tabIndex={-1}>
        <RecordingTask {...props} />
      </div>
    );
  }
  const take = (file: File) => onChange(withSource(draft, file));
  return (
    <div>
      <Drop id="source" label={t("Recording to work on")} onFile={take}>
        {t("Drop a recording to cover, repaint or extend it, or")}{" "}
        <span class="link">{t("choose a file")}</span>
      </Drop>
      <Recorder label={t("Record something to work on")} onFile={take} />
    </div>
  );
}

/** Field for a reference recording, whose timbre the song takes. All task types can use it. */
export function Reference({ draft, onChange }: SourceProps) {
  const { values, files } = draft;
  const path = values.reference_audio_path;
  const name = files.reference_audio?.name ?? (path && decodeURIComponent(String(path)).split("/").at(-1));
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
    <Group
      icon="wave"
      title={t("Reference recording")}
      summary={name === undefined ? t("none") : String(name)}
    >
      {name === undefined ? (
        <>
          <Drop id="reference" label={t("Reference recording")} onFile={take}>
            {t("Drop a recording whose sound you like, or")} <span class="link">{t("choose a file")}</span>
          </Drop>
          <Recorder label={t("Record a reference")} onFile={take} />
        </>
      ) : (
        <Button aria-label={t("Remove {name}", { name: String(name) })} onClick={() => take()}>
          {t("Remove")}
        </Button>
      )}
    </Group>
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
