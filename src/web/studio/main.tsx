/** The studio: song form on one side, queue and library on the other, player below. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { carillon, type Parameters, type Song, submit, type Task } from "./api.js";
import { Composer } from "./composer.js";
import {
  draftFromParameters,
  EMPTY_DRAFT,
  parametersOf,
  withReference,
  withSource,
  withValues,
} from "./draft.js";
import { FileDrop } from "./file-drop.js";
import { Header } from "./header.js";
import { KeyEntry } from "./key.js";
import { loadLanguage, storeLanguage, t } from "./language.js";
import { Library } from "./library.js";
import { type LibraryQuery, notifyTabs, useLive } from "./live.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { isSettingsFile, readSettings } from "./settings-file.js";
import { songName, songUrl, useTrack } from "./song.js";
import { applyTheme, storedTheme } from "./theme.js";
import { type DraftChange, useDraft } from "./undo.js";
import { Workshop } from "./workshop.js";

const NOTICE_MS = 5000;

/** The studio has two views. A phone shows one of them; a large screen shows both. */
type View = "make" | "songs";

interface NoticeText {
  text: string;
  isError: boolean;
  /** Undoes the action that the notice reports. */
  undo?: (() => void) | undefined;
}

function Studio() {
  const { draft, setDraft, replaceDraft } = useDraft();
  const [query, setQuery] = useState<LibraryQuery>(firstQuery);
  const [notice, setNotice] = useState<NoticeText | null>(null);
  const [view, setView] = useState<View>("make");
  const notify = (text: string, isError = false, undo?: () => void) => setNotice({ text, isError, undo });
  const replace = (change: DraftChange, done: string) => notify(done, false, replaceDraft(change));
  const live = useLive(query);
  const [track, setTrack] = useTrack(live, (task) =>
    notify(t("{song} was deleted, so it no longer plays.", { song: songName(task) }), true),
  );
  const isLocked = live.connection === "locked";
  useEffect(() => {
    if (isLocked) setTrack(null);
  }, [isLocked]);

  /** Runs a user action, then shows `done` or the error as a notice. */
  const attempt = async (work: () => Promise<unknown>, done = "") => {
    try {
      setNotice(null);
      await work();
      if (done !== "") notify(done);
    } catch (error) {
      notify(error instanceof Error ? error.message : String(error), true);
    }
    notifyTabs();
    await live.refresh();
  };
  const send = (parameters: Parameters, files: Record<string, File> = {}) =>
    attempt(() => submit(parameters, files), t("Queued."));
  const fill = (parameters: Parameters, done: string) => {
    replace(() => draftFromParameters(parameters), done);
    setView("make");
    document.getElementById("prompt")?.focus();
  };
  const reuse = ({ parameters, uploads }: Task) =>
    fill(
      parameters,
      uploads.length > 0
        ? t("These settings are in the form now. Add the recording again.")
        : t("These settings are in the form now."),
    );
  const again = (task: Task, change: Parameters = {}) =>
    task.uploads.length > 0 ? reuse(task) : void send({ ...task.parameters, ...change });
  const edit = (task: Task, song: Song) => {
    const words = { prompt: song.prompt, lyrics: song.lyrics };
    const values = { ...words, task_type: "repaint", src_audio_path: song.file, batch_size: 1 };
    const sourceName = task.title || task.prompt || t("song");
    replace(() => ({ ...EMPTY_DRAFT, values, sourceName }), t("This song is now the source recording."));
    setView("make");
    document.getElementById("source")?.scrollIntoView({ behavior: "smooth", block: "center" });
  };
  const openSettings = (file: File) =>
    attempt(async () => fill(await readSettings(file), t("These settings are in the form now.")));
  /** Queues a task that describes a recording; its card offers to use the description. */
  const describe = (parameters: Parameters, files: Record<string, File> = {}) => {
    setView("songs");
    void send({ ...parameters, full_analysis_only: true }, files);
  };
  const useDescription = ({ analysis }: Task) => {
    const { prompt, lyrics, bpm, keyscale, timesignature, language } = analysis ?? {};
    const vocal_language = language === "unknown" ? null : language;
    const found = { prompt, lyrics, bpm, key_scale: keyscale, time_signature: timesignature, vocal_language };
    const known = Object.entries(found).filter(([, value]) => value !== undefined && value !== "");
    replace(
      (now) => withValues(now, Object.fromEntries(known)),
      t("The recording's description is in the form now."),
    );
    setView("make");
    document.getElementById("prompt")?.focus();
  };
  /** Stops a task. A song that was finished meanwhile stays. */
  const cancel = (task: Task) =>
    attempt(async () => {
      try {
        await carillon.cancel(task.task_id);
        if (track?.task.task_id === task.task_id) setTrack(null);
      } catch (error) {
        if (!(error instanceof CarillonError && error.status === 404)) throw error;
        notify(t("{song} was finished already.", { song: songName(task) }));
      }
    });
  /** Plays the next (1) or previous (-1) song of the library. */
  const step = (by: 1 | -1) => {
    const at = live.library.findIndex(({ task_id }) => task_id === track?.task.task_id);
    const next = at < 0 ? undefined : live.library.slice(by > 0 ? at + 1 : 0, by > 0 ? undefined : at);
    const playable = next?.filter(({ songs }) => songs.length > 0).at(by > 0 ? 0 : -1);
    if (playable !== undefined) setTrack({ task: playable, index: 0 });
  };
  const remove = (task: Task) => {
    if (track?.task.task_id === task.task_id) setTrack(null);
    // Move the focus, because the pressed button disappears with its song.
    document.getElementById("library-title")?.focus();
    void attempt(() => carillon.delete(task.task_id, task.state));
  };

  const header = (
    <Header
      live={live}
      onLanguage={(code) => {
        storeLanguage(code);
        void loadLanguage().then(show);
      }}
    />
  );
  if (isLocked) {
    return (
      <>
        {header}
        <main class="locked">
          <KeyEntry onUnlock={live.refresh} />
        </main>
      </>
    );
  }
  return (
    <>
      {header}
      <Views view={view} onView={setView} busy={live.active.length} />
      <main data-view={view}>
        <Composer
          draft={draft}
          onChange={setDraft}
          isBusy={live.active.length > 0}
          onReplace={replace}
          onSubmit={(change = {}) => {
            setView("songs");
            void send({ ...parametersOf(draft), ...change }, draft.files);
          }}
          onSettingsFile={openSettings}
          onDescribe={() => {
            const { src_audio_path } = draft.values;
            const { src_audio } = draft.files;
            describe({ src_audio_path }, src_audio === undefined ? {} : { src_audio });
          }}
          attempt={attempt}
        />
        <div class="made">
          <Queue
            live={live}
            playing={track?.task}
            onListen={(task) => setTrack({ task, index: 0 })}
            onCancel={cancel}
            onDismiss={remove}
            onAgain={again}
          />
          <Library
            live={live}
            query={query}
            onQuery={setQuery}
            track={track}
            onPlay={setTrack}
            attempt={attempt}
            on={{
              again: (task) => again(task),
              vary: (task) => again(task, { use_random_seed: true, seed: -1 }),
              reuse,
              fill,
              edit,
              remove,
              describe: (song) => describe({ src_audio_path: song.file }),
              useDescription,
              share: (task) =>
                attempt(
                  () => navigator.clipboard.writeText(new URL(songUrl(task), location.href).href),
                  t("The link is copied."),
                ),
              reference: (task, song) =>
                replace(
                  (now) => withReference(now, song),
                  t("{song} is the reference recording.", { song: songName(task) }),
                ),
              change: (task, change) => void attempt(() => carillon.mark(task.task_id, change)),
            }}
          />
          <Workshop attempt={attempt} />
        </div>
      </main>
      <FileDrop
        onFile={(file) => {
          if (isSettingsFile(file)) {
            void openSettings(file);
            return;
          }
          setView("make");
          replace((now) => withSource(now, file), t("This recording is now the source."));
        }}
      />
      <Notice notice={notice} onClose={() => setNotice(null)} />
      <Player track={track} onTrack={setTrack} onStep={step} />
    </>
  );
}

/** Toast: results disappear after a while, errors stay until dismissed. */
function Notice({ notice, onClose }: { notice: NoticeText | null; onClose: () => void }) {
  useEffect(() => {
    if (notice === null || notice.isError) return;
    const timer = setTimeout(onClose, NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class="notice" role="status">
      {notice && (
        <p class={notice.isError ? "failed" : ""}>
          {notice.text}{" "}
          {notice.undo && (
            <button
              type="button"
              onClick={() => {
                notice.undo?.();
                onClose();
              }}
            >
              {t("Undo")}
            </button>
          )}
          <button type="button" class="plain" aria-label={t("Close message")} onClick={onClose}>
            ✕
          </button>
        </p>
      )}
    </div>
  );
}

interface ViewsProps {
  view: View;
  onView: (view: View) => void;
  /** Number of waiting and running tasks. */
  busy: number;
}

/** Tabs, shown on phones. */
function Views({ view, onView, busy }: ViewsProps) {
  const names: [View, string][] = [
    ["make", t("Make a song")],
    ["songs", t("Songs")],
  ];
  return (
    <nav class="views" aria-label={t("Views")}>
      {names.map(([name, words]) => (
        <button
          type="button"
          key={name}
          aria-current={view === name ? "page" : undefined}
          onClick={() => {
            onView(name);
            scrollTo(0, 0);
          }}
        >
          {words}
          {name === "songs" && busy > 0 && <span class="badge">{busy}</span>}
        </button>
      ))}
    </nav>
  );
}

/** The whole library, or the song named in the page's URL. */
function firstQuery(): LibraryQuery {
  const id = new URLSearchParams(location.search).get("song");
  const list = id === null ? null : { name: t("Shared song"), ids: [id] };
  return { search: "", favorite: false, order: "newest", list, offset: 0 };
}

function show(): void {
  render(<Studio />, document.body);
}

applyTheme(storedTheme());
void loadLanguage().then(show);
