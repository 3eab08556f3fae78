/** Actions on a song of the library, and all that is known about it. */
import { useEffect, useState } from "preact/hooks";
import type { Parameters, Song, Task } from "./api.js";
import { Button, DeleteButton } from "./button.js";
import { SongPlan } from "./codes.js";
import { FactList } from "./fact-list.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { NO_VOCALS } from "./lyrics.js";
import { noteInWords } from "./notes.js";
import { settingsInWords } from "./parameters.js";
import { expiryText, useRetention } from "./retention.js";
import { SaveSettings } from "./settings-file.js";
import { Download, LyricsFile, songName, songUrl, versionLetter } from "./song.js";

export interface SongActions {
  again: (task: Task) => void;
  vary: (task: Task) => void;
  reuse: (task: Task) => void;
  fill: (parameters: Parameters, done: string) => void;
  edit: (task: Task, song: Song) => void;
  remove: (task: Task) => void;
  describe: (task: Task, song: Song) => void;
  useDescription: (values: Parameters) => void;
  /** Copies a link to the song. */
  share: (task: Task) => void;
  /** Uses the song as the reference recording of the next song. */
  reference: (task: Task, song: Song) => void;
  change: (task: Task, change: { title?: string; favorite?: boolean }) => Promise<boolean>;
}

/** Id of the button that renames a song. */
export const renameId = ({ task_id }: Task) => `rename-${task_id}`;

interface CardMenuProps {
  task: Task;
  on: SongActions;
  onRename: () => void;
  onClose: () => void;
}

export function CardMenu({ task, on, onRename, onClose }: CardMenuProps) {
  const { songs } = task;
  useEffect(() => {
    const card = document.getElementById(`song-${task.task_id}`);
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== "Escape") return;
      onClose();
      card?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
    };
    card?.addEventListener("keydown", onKey);
    return () => card?.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class="details">
      <div class="row actions">
        <Button icon="shuffle" onClick={() => on.vary(task)} title={t("The same settings, new seeds")}>
          {t("Vary")}
        </Button>
        <Button icon="dials" onClick={() => on.reuse(task)} title={t("Fills the form with the settings")}>
          {t("Use settings")}
        </Button>
        <Button icon="repeat" onClick={() => on.again(task)} title={t("The same settings and seeds")}>
          {t("Make again")}
        </Button>
      </div>
      {songs.map((song, index) => (
        <VersionActions key={song.file} task={task} song={song} index={index} on={on} />
      ))}
      <div class="row actions">
        <Button id={renameId(task)} icon="pencil" onClick={onRename}>
          {t("Rename")}
        </Button>
        <a
          class="button"
          href={songUrl(task)}
          onClick={(event) => {
            // Pages without TLS cannot use the clipboard, so the browser opens the link instead.
            if (navigator.clipboard === undefined) return;
            event.preventDefault();
            on.share(task);
          }}
        >
          <Icon name="link" />
          {t("Copy link")}
        </a>
        <SaveSettings task={task} />
        <DeleteButton
          class="plain end"
          icon="trash"
          sure={t("Delete for good")}
          onDelete={() => on.remove(task)}
        />
      </div>
      <About task={task} />
      {songs.map((song, index) => (
        <SongPlan
          key={song.file}
          task={task}
          index={index}
          onReuse={(parameters) =>
            on.fill(parameters, t("The codes and their settings are in the form now."))
          }
        />
      ))}
    </div>
  );
}

interface VersionProps extends Pick<CardMenuProps, "task" | "on"> {
  song: Song;
  index: number;
}

function VersionActions({ task, song, index, on }: VersionProps) {
  return (
    <div class="row actions">
      {task.songs.length > 1 && <strong>{versionLetter(index)}</strong>}
      <Button icon="wave" onClick={() => on.edit(task, song)}>
        {t("Edit")}
      </Button>
      <Download name={songName(task)} song={song} />
      <Button
        icon="volume"
        onClick={() => on.reference(task, song)}
        title={t("The next song sounds like this one")}
      >
        {t("Use as reference")}
      </Button>
      <Button icon="note" onClick={() => on.describe(task, song)} title={t("Tempo, key, language and style")}>
        {t("Describe")}
      </Button>
      {song.lrc && <LyricsFile name={songName(task)} lrc={song.lrc} />}
    </div>
  );
}

/** Notes of the service, words and settings of a song. */
function About({ task }: { task: Task }) {
  const retention = useRetention(task.task_id, task.favorite ? 1 : 2);
  const expiry = retention === null ? "" : expiryText(task, retention);
  const [song] = task.songs;
  return (
    <>
      {expiry !== "" && <p class="faint stay">{expiry}</p>}
      {task.notes.length > 0 && (
        <ul class="faint">
          {task.notes.map((note) => (
            <li key={note.text}>{noteInWords(note)}</li>
          ))}
        </ul>
      )}
      {song && song.caption !== "" && <p dir="auto">{song.caption}</p>}
      {song && !["", NO_VOCALS].includes(song.lyrics) && <pre dir="auto">{song.lyrics}</pre>}
      <Settings task={task} />
    </>
  );
}

/** Settings in words, and one click further all that the service sent. */
function Settings({ task: { parameters, warnings, songs } }: { task: Task }) {
  const [isOpen, setOpen] = useState(false);
  const seeds = songs.map(({ seed }) => seed).join(", ");
  const settings = { ...parameters, seed: seeds, model: songs[0]?.dit_model };
  return (
    <details class="whole" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="faint">{t("Settings")}</summary>
      {isOpen && (
        <>
          <FactList facts={settingsInWords(settings)} />
          <details>
            <summary class="faint">{t("Raw data")}</summary>
            <pre>{JSON.stringify({ parameters, warnings }, null, 2)}</pre>
          </details>
        </>
      )}
    </details>
  );
}
