/**
 * Songs for training: drop zone and labels. Also makes the same song without and with the adapter,
 * for comparison.
 */

import { carillon, type Parameters, submit } from "./api.js";
import { RoundButton } from "./button.js";
import { t } from "./language.js";

export interface TrainingSong {
  file: File;
  /** Description of the song. If empty, the common description of all songs applies. */
  caption: string;
}

interface TrainingSongsProps {
  songs: readonly TrainingSong[];
  onChange: (songs: readonly TrainingSong[]) => void;
}

export function TrainingSongs({ songs, onChange }: TrainingSongsProps) {
  const add = (files: FileList | null | undefined) => {
    const fresh = [...(files ?? [])].filter(({ name }) => !songs.some(({ file }) => file.name === name));
    onChange([...songs, ...fresh.map((file) => ({ file, caption: "" }))]);
  };
  return (
    <>
      <label
        class="drop"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          add(event.dataTransfer?.files);
        }}
      >
        <input
          type="file"
          class="hidden"
          multiple
          accept=".flac,.m4a,.mp3,.ogg,.opus,.wav"
          aria-label={t("Songs to learn from")}
          onChange={(event) => add(event.currentTarget.files)}
        />
        {t("Drop songs to learn from, or")} <span class="link">{t("choose files")}</span>
      </label>
      {songs.map(({ file, caption }) => (
        <div class="row" key={file.name}>
          <span class="name file">{file.name}</span>
          <input
            dir="auto"
            aria-label={t("What {name} sounds like", { name: file.name })}
            placeholder={t("What it sounds like")}
            value={caption}
            onInput={(event) => {
              const { value } = event.currentTarget;
              onChange(songs.map((song) => (song.file === file ? { file, caption: value } : song)));
            }}
          />
          <RoundButton
            label={t("Remove {name}", { name: file.name })}
            onClick={() => onChange(songs.filter((song) => song.file !== file))}
          >
            ✕
          </RoundButton>
        </div>
      ))}
    </>
  );
}

/** Queues two tasks that make the same song, one without and one with the adapter. */
export async function makeComparisonPair(adapter: string, { name, caption }: Parameters): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const prompt = String(caption || name || t("the trained style"));
  for (const [title, loras] of [
    [t("{prompt}: before", { prompt }), []],
    [t("{prompt}: after", { prompt }), [{ path: adapter }]],
  ] as const) {
    const song = { prompt, seed, use_random_seed: false, batch_size: 1, loras };
    const { task_id } = await submit(song);
    await carillon.mark(task_id, { title });
  }
}
