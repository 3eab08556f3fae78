/** The studio: what a person makes on one side, what was made on the other, and a player below both. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, newName, type Parameters, type Song, storedKey, storeKey, submit, type Task } from "./api.js";
import { Composer } from "./composer.js";
import { type Draft, draftOf, EMPTY_DRAFT, loadDraft, parametersOf, saveDraft } from "./draft.js";
import { Library } from "./library.js";
import { type LibraryQuery, type Live, tellTabs, useLive } from "./live.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { nameOf, useTrack } from "./song.js";
import { Workshop } from "./workshop.js";

const NOTICE_MS = 5000;

interface NoticeText {
  text: string;
  isError: boolean;
}

function Studio() {
  const [draft, setDraft] = useState<Draft>(loadDraft);
  const [query, setQuery] = useState<LibraryQuery>({ search: "", favorite: false, offset: 0 });
  const [notice, setNotice] = useState<NoticeText | null>(null);
  const tell = (text: string, isError = false) => setNotice({ text, isError });
  const live = useLive(query);
  const [track, setTrack] = useTrack(live, (task) =>
    tell(`${nameOf(task)} was deleted, so it no longer plays.`, true),
  );
  useEffect(() => saveDraft(draft), [draft]);

  /** Runs what a person asked for; what went wrong is told where it was asked. */
  const attempt = async (work: () => Promise<unknown>, done = "") => {
    try {
      setNotice(null);
      await work();
      if (done !== "") tell(done);
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    }
    tellTabs();
    await live.refresh();
  };
  const send = (parameters: Parameters, files: Record<string, File> = {}) =>
    attempt(() => submit(parameters, files, newName()), "Queued.");
  const fill = (parameters: Parameters, done: string) => {
    setDraft(draftOf(parameters));
    tell(done);
    document.getElementById("prompt")?.focus();
  };
  const reuse = ({ parameters, uploads }: Task) =>
    fill(parameters, `All settings are here.${uploads.length > 0 ? " Add the recording once more." : ""}`);
  const again = (task: Task, change: Parameters = {}) =>
    task.uploads.length > 0 ? reuse(task) : void send({ ...task.parameters, ...change });
  const edit = (task: Task, song: Song) => {
    const words = { prompt: song.prompt, lyrics: song.lyrics };
    const values = { ...words, task_type: "repaint", src_audio_path: song.file, batch_size: 1 };
    setDraft({ ...EMPTY_DRAFT, values, sourceName: task.title || task.prompt || "song" });
    document.getElementById("source")?.scrollIntoView({ behavior: "smooth", block: "center" });
  };
  const remove = (task: Task) => {
    if (track?.task.task_id === task.task_id) setTrack(null);
    // The button that was pressed goes with its song.
    document.getElementById("library-title")?.focus();
    void attempt(() => call("DELETE", `/v1/tasks/${task.task_id}`));
  };

  return (
    <>
      <Header live={live} />
      <main>
        {live.connection === "locked" && <KeyEntry onKey={() => void live.refresh()} />}
        <Composer
          draft={draft}
          onChange={setDraft}
          isBusy={live.active.length > 0}
          onSubmit={() => void send(parametersOf(draft), draft.files)}
          attempt={attempt}
        />
        <div class="made">
          <Queue
            live={live}
            playing={track?.task}
            onListen={(task) => setTrack({ task, index: 0 })}
            onRemove={remove}
            onAgain={again}
          />
          <Library
            live={live}
            query={query}
            onQuery={setQuery}
            track={track}
            onPlay={setTrack}
            on={{
              again: (task) => again(task),
              vary: (task) => again(task, { use_random_seed: true, seed: -1 }),
              reuse,
              fill,
              edit,
              remove,
              change: (task, change) =>
                void attempt(() => call("PATCH", `/v1/tasks/${task.task_id}`, change)),
            }}
          />
          <Workshop attempt={attempt} />
        </div>
      </main>
      <Notice notice={notice} onClose={() => setNotice(null)} />
      <Player track={track} onTrack={setTrack} />
    </>
  );
}

/** Says what was done for a while, and what went wrong until it is read. */
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
          <button type="button" class="plain" aria-label="Close message" onClick={onClose}>
            ✕
          </button>
        </p>
      )}
    </div>
  );
}

const CONNECTION_WORDS: Record<Live["connection"], string> = {
  connecting: "Connecting…",
  online: "Online",
  offline: "Offline: trying again",
  locked: "Key needed",
};

function Header({ live }: { live: Live }) {
  const [model, setModel] = useState("");
  useEffect(() => {
    if (live.connection !== "online") return;
    call<{ default_model: string }>("GET", "/v1/models").then(
      (models) => setModel(models.default_model),
      () => setModel(""),
    );
  }, [live.connection]);
  return (
    <header>
      <h1>
        <img src="/studio/icon.svg" alt="" />
        Carillon
      </h1>
      {model !== "" && <span class="faint">{model}</span>}
      <span class={`connection ${live.connection}`} role="status">
        {CONNECTION_WORDS[live.connection]}
      </span>
      <nav>
        {storedKey() !== "" && (
          <button
            type="button"
            class="plain"
            onClick={() => {
              storeKey("");
              void live.refresh();
            }}
          >
            Forget key
          </button>
        )}
        <a href="/docs">API</a>
      </nav>
    </header>
  );
}

function KeyEntry({ onKey }: { onKey: () => void }) {
  const [tried, setTried] = useState(storedKey());
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        const key = String(new FormData(event.currentTarget).get("key") ?? "").trim();
        storeKey(key);
        setTried(key);
        onKey();
      }}
    >
      <label for="key">
        {tried === "" ? "This server asks for a key (SVC_API_KEY)." : "The server does not accept this key."}
      </label>
      <div class="row">
        <input id="key" name="key" type="password" required autocomplete="current-password" />
        <button type="submit" class="main">
          Unlock
        </button>
      </div>
    </form>
  );
}

render(<Studio />, document.body);
