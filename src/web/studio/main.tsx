/** The studio: song form on one side, queue and library on the other, player below. */
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CarillonError, type TaskChanges } from "../../client/index.js";
import {
  carillon,
  hasSession,
  type Parameters,
  type Song,
  submit,
  type Task,
  UnreachableError,
} from "./api.js";
import { applyTheme, storedTheme } from "./appearance.js";
import { showNewest, useArrivals } from "./arrivals.js";
import { errorNotice, useAttempt } from "./attempt.js";
import { Button } from "./button.js";
import { Composer } from "./composer.js";
import { describe } from "./descriptions.js";
import { Dock, Notice, type NoticeText } from "./dock.js";
import {
  draftFromParameters,
  EMPTY_DRAFT,
  filledDraft,
  isEmpty,
  parametersOf,
  withReference,
  withSource,
} from "./draft.js";
import { FileDrop } from "./file-drop.js";
import { Header } from "./header.js";
import { isStored } from "./kept.js";
import { KeyEntry } from "./key.js";
import { language, loadLanguage, t } from "./language.js";
import { Library } from "./library.js";
import { connection, refresh, search, startLive } from "./live.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { isSettingsFile, readSettings } from "./settings-file.js";
import { songName, songUrl, useTrack } from "./song.js";
import { sharedSong, songAt, songs } from "./songs.js";
import { useStore } from "./store.js";
import { checkStyles } from "./styles.js";
import { type DraftChange, type Undo, useDraft } from "./undo.js";
import { useView, type View, ViewTabs } from "./views.js";
import { Workshop } from "./workshop.js";

function Studio() {
  const { draft, setDraft, replaceDraft } = useDraft();
  /** Why the service refused the song of the form, until the form changes. */
  const [refusal, setRefusal] = useState<{ words: string; isUnreachable: boolean } | null>(null);
  useEffect(() => setRefusal(null), [draft]);
  const state = useStore(connection);
  const [notice, setNotice] = useState<NoticeText | null>(null);
  useEffect(() => {
    if (state !== "online") return;
    setRefusal((last) => (last?.isUnreachable ? null : last));
    setNotice((last) => (last?.isUnreachable ? null : last));
  }, [state]);
  const [view, setView] = useView(sharedSong() === null ? "make" : "songs");
  const notify = (text: string, isError = false, action?: NoticeText["action"]) =>
    setNotice({ text, isError, action });
  const { attempt, queueOnce } = useAttempt(setNotice);
  const offerUndo = (done: string, undo: Undo) => {
    const run = () => {
      const redo = undo();
      if (redo !== null) offerUndo(t("The form is as it was before. Undo brings back your new words."), redo);
    };
    notify(done, false, { label: t("Undo"), run });
  };
  const replace = (change: DraftChange, done: string) => offerUndo(done, replaceDraft(change));
  const [track, setTrack] = useTrack((task) =>
    notify(t("{song} was deleted, so it no longer plays.", { song: songName(task) }), true),
  );
  const isLocked = useStore(connection) === "locked";
  const isKept = useStore(isStored);
  useEffect(() => {
    if (isKept) return;
    notify(
      t("This browser stores nothing more. Playlists, settings and words last until you close the page."),
      true,
    );
  }, [isKept]);
  const showSong = () => {
    setView("songs");
    search({ search: "", favorite: false, order: "newest", list: null });
    showNewest();
  };
  useArrivals((words) =>
    setNotice((now) =>
      now?.isError ? now : { text: words, isError: false, action: { label: t("Show"), run: showSong } },
    ),
  );
  useEffect(() => {
    if (isLocked) setTrack(null);
  }, [isLocked]);
  useSharedSong(isLocked, ({ parameters }) => {
    // Words of the user are not replaced.
    if (isEmpty(draft)) {
      replace(() => draftFromParameters(parameters), t("The settings of this song are in the form."));
    }
  });

  /** Shows a part of a view, and moves the focus to it. */
  const reveal = (where: View, id: string) => {
    setView(where);
    // A phone draws the view only now.
    requestAnimationFrame(() => {
      const part = document.getElementById(id);
      part?.scrollIntoView({ block: "center" });
      part?.focus({ preventScroll: true });
    });
  };
  /** Makes the song of the form. The form says why a song was refused. */
  const make = (change: Parameters) => {
    setView("songs");
    setRefusal(null);
    const sent = async () => {
      await checkStyles();
      await submit({ ...parametersOf(draft), ...change }, draft.files);
    };
    void queueOnce("form", sent, (words, error) => {
      setView("make");
      const isUnreachable = error instanceof UnreachableError;
      const kept = t("Your words are kept here; send them once it is back.");
      setRefusal({ words: isUnreachable ? `${words} ${kept}` : words, isUnreachable });
    });
  };
  const fill = (parameters: Parameters, done: string) => {
    replace(() => draftFromParameters(parameters), done);
    reveal("make", "prompt");
  };
  const reuse = ({ parameters, uploads }: Task) =>
    fill(
      parameters,
      uploads.length > 0
        ? t("These settings are in the form now. Add the recording again.")
        : t("These settings are in the form now."),
    );
  const again = (task: Task) =>
    task.uploads.length > 0
      ? reuse(task)
      : void queueOnce(`again ${task.task_id}`, () => submit(task.parameters));
  const edit = (task: Task, song: Song) => {
    const words = { prompt: song.prompt, lyrics: song.lyrics };
    const values = { ...words, task_type: "repaint", src_audio_path: song.file, batch_size: 1 };
    const sourceName = songName(task);
    replace(() => ({ ...EMPTY_DRAFT, values, sourceName }), t("This song is now the source recording."));
    reveal("make", "source");
  };
  const openSettings = (file: File) =>
    attempt(async () => fill(await readSettings(file), t("These settings are in the form now.")));
  const takeDescription = (values: Parameters) => {
    replace((now) => filledDraft(now, values), t("The recording's description is in the form now."));
    reveal("make", "prompt");
  };
  const cancelled = useRef(new Set<string>());
  /** Stops a task. A song that was finished meanwhile stays. A double click cancels once. */
  const cancel = async (task: Task) => {
    const { task_id: id } = task;
    if (cancelled.current.has(id)) return;
    cancelled.current.add(id);
    await attempt(async () => {
      try {
        await carillon.cancel(id);
        if (track?.task.task_id === id) setTrack(null);
      } catch (error) {
        cancelled.current.delete(id);
        if (!(error instanceof CarillonError && error.status === 404)) throw error;
        notify(t("{song} was finished already.", { song: songName(task) }));
      }
    });
  };
  /** Plays the next (1) or previous (-1) song of the library. */
  const step = (by: 1 | -1) => {
    const at = songs.value.rows.findIndex((row) => row?.task_id === track?.task.task_id);
    if (at < 0) return;
    songAt(at + by).then(
      (task) => task && setTrack({ task, index: 0 }),
      (error: unknown) => setNotice(errorNotice(error)),
    );
  };
  const remove = (task: Task) => {
    if (track?.task.task_id === task.task_id) setTrack(null);
    // Move the focus, because the pressed button disappears with its song.
    document.getElementById("library-title")?.focus();
    void attempt(() => carillon.delete(task.task_id, task.state));
  };

  const on = useLatest({
    again,
    vary: (task: Task) =>
      task.uploads.length > 0
        ? reuse(task)
        : queueOnce(`vary ${task.task_id}`, () => carillon.retake(task.task_id)),
    reuse,
    fill,
    edit,
    remove,
    describe: (task: Task, song: Song) =>
      attempt(() => describe(song.file, songName(task), { src_audio_path: song.file })),
    useDescription: takeDescription,
    share: (task: Task) => {
      const { href } = new URL(songUrl(task), location.href);
      const done = hasSession()
        ? t("The link is copied. Whoever opens it needs the key of this server.")
        : t("The link is copied.");
      // A browser that forbids copying: the user copies the link by hand.
      return attempt(
        () => navigator.clipboard.writeText(href),
        done,
        () => notify(href),
      );
    },
    reference: (task: Task, song: Song) =>
      replace(
        (now) => withReference(now, song),
        t("{song} is the reference recording.", { song: songName(task) }),
      ),
    change: (task: Task, change: TaskChanges) => attempt(() => carillon.mark(task.task_id, change)),
    attempt,
  });
  // Typing in the form does not render the songs again.
  const library = useMemo(
    () => <Library track={track} onPlay={setTrack} attempt={on.attempt} on={on} />,
    [track, language()],
  );

  const header = <Header view={view} onLanguage={(code) => void loadLanguage(code).then(show)} />;
  if (isLocked) {
    return (
      <>
        {header}
        <main class="locked">
          <KeyEntry onUnlock={refresh} />
        </main>
      </>
    );
  }
  return (
    <>
      <Button class="skip" onClick={() => reveal("songs", "library-title")}>
        {t("Skip to the songs")}
      </Button>
      {header}
      <ViewTabs view={view} onView={setView} />
      <main data-view={view}>
        <Composer
          draft={draft}
          onChange={setDraft}
          onReplace={replace}
          refusal={refusal?.words ?? ""}
          onSubmit={(change = {}) => make(change)}
          onSettingsFile={openSettings}
          onUseDescription={takeDescription}
          attempt={attempt}
        />
        <div class="made">
          <Queue
            playing={track?.task}
            onListen={(task) => setTrack({ task, index: 0 })}
            onCancel={cancel}
            onDismiss={remove}
            onAgain={again}
          />
          {library}
        </div>
        {view === "models" && <Workshop attempt={attempt} onLeave={() => setView("songs")} />}
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
      <Dock>
        <Notice notice={notice} onClose={() => setNotice(null)} />
        <Player track={track} onTrack={setTrack} onStep={step} />
      </Dock>
    </>
  );
}

/** Calls `onSong` with the song of a shared link, once. */
function useSharedSong(isLocked: boolean, onSong: (task: Task) => void): void {
  useEffect(() => {
    const id = sharedSong();
    // The library says that a song is missing.
    if (id !== null && !isLocked) carillon.task(id).then(onSong, () => {});
  }, [isLocked]);
}

type Functions = Record<string, (...values: never[]) => unknown>;

/** Functions that stay the same at every render and call the latest ones. */
function useLatest<T extends Functions>(functions: T): T {
  const latest = useRef(functions);
  latest.current = functions;
  return useMemo(() => {
    const names = Object.keys(functions);
    return Object.fromEntries(
      names.map((name) => [name, (...values: never[]) => latest.current[name]?.(...values)]),
    ) as T;
  }, []);
}

function show(): void {
  render(<Studio />, document.body);
}

applyTheme(storedTheme());
void startLive();
void loadLanguage().then(show);
