/** The page of one song, which a shared link opens: cover, waveform, words, download. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { carillon, type Task } from "./api.js";
import { applyTheme, storedTheme } from "./appearance.js";
import { Button } from "./button.js";
import { CoverPicture } from "./cover.js";
import { Dock } from "./dock.js";
import { Karaoke } from "./karaoke.js";
import { KeyEntry } from "./key.js";
import { loadLanguage, t } from "./language.js";
import { NO_VOCALS } from "./lyrics.js";
import { controls, usePlayback } from "./playback.js";
import { Player } from "./player.js";
import { songName, type Track } from "./song.js";
import { lyricLines } from "./timed-lyrics.js";
import { formatTime } from "./words.js";

const id = decodeURIComponent(location.pathname.split("/").at(-1) ?? "");

function Listening() {
  const [track, setTrack] = useState<Track | null>(null);
  const [task, setTask] = useState<Task | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const read = () =>
    carillon.task(id).then((found) => {
      setTask(found);
      setFailure(null);
      setTrack(found.songs.length > 0 ? { task: found, index: 0 } : null);
    }, setFailure);
  useEffect(() => void read(), []);
  useEffect(() => {
    if (task !== null) document.title = `${songName(task)} – Carillon`;
  }, [task]);
  return (
    <>
      <header>
        <a class="home" href="/">
          <img src="/studio/icon.svg" alt="" />
          Carillon
        </a>
        <nav aria-label={t("Page")}>
          <a href={`/?song=${encodeURIComponent(id)}`}>{t("Open in the studio")}</a>
        </nav>
      </header>
      <main class="listening">
        {task === null ? <Unread failure={failure} onUnlock={read} /> : <SongOf task={task} track={track} />}
      </main>
      <Dock>
        <Player track={track} onTrack={(next) => next && setTrack(next)} onStep={() => controls.seek(0)} />
      </Dock>
    </>
  );
}

/** Shown until the song is read. */
function Unread({ failure, onUnlock }: { failure: unknown; onUnlock: () => Promise<void> }) {
  const status = failure instanceof CarillonError ? failure.status : 0;
  if (status === 401) {
    return (
      <>
        <p>{t("To hear this song, enter the key of its server.")}</p>
        <KeyEntry onUnlock={onUnlock} />
      </>
    );
  }
  if (failure === null) return <p role="status">{t("Loading…")}</p>;
  return (
    <>
      <p role="alert">
        {status === 404 || status === 400
          ? t("This song is no longer here. It may have been deleted.")
          : t("The server cannot be reached.")}
      </p>
      {status === 0 && <Button onClick={onUnlock}>{t("Try again")}</Button>}
    </>
  );
}

function SongOf({ task, track }: { task: Task; track: Track | null }) {
  const { seconds, length } = usePlayback(true);
  const song = task.songs[track?.index ?? 0];
  if (song === undefined) return <p role="status">{t("still being made")}</p>;
  const { duration, bpm, keyscale } = song.metas;
  const facts = [duration && formatTime(duration), bpm && `${bpm} BPM`, keyscale].filter(Boolean);
  const isTimed = lyricLines(song).length > 0;
  const name = songName(task);
  return (
    <>
      <CoverPicture song={song} />
      <h1 dir="auto">{name}</h1>
      {task.prompt !== name && <p dir="auto">{task.prompt}</p>}
      <p class="faint">{facts.join(" · ")}</p>
      {isTimed && (
        <Karaoke song={song} seconds={seconds} onSeek={(at) => controls.seek(length > 0 ? at / length : 0)} />
      )}
      {!isTimed && ![NO_VOCALS, ""].includes(song.lyrics) && <pre dir="auto">{song.lyrics}</pre>}
    </>
  );
}

applyTheme(storedTheme());
void loadLanguage().then(() => render(<Listening />, document.body));
