/**
 * Plays the song in the player while it arrives. What the page names is what sounds: a song that fails to load stops
 * the other.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { withTimeLimit } from "../../system/time-limit.js";
import { carillon } from "./api.js";
import { t } from "./language.js";
import { connection } from "./live.js";
import { gainOf, setGain } from "./loudness.js";
import { playAlone } from "./one-sound.js";
import { controls, type Playback, SHOWN_STEP, SILENCE, updatePlayback } from "./playback.js";
import type { Track } from "./song.js";

/** Time limit of the request that finds out why a song did not load. */
const REASON_MS = 10_000;
/** A song that lacks data for longer is shown as loading. Each seek lacks data for a moment. */
const PATIENCE_MS = 300;

export interface Sound extends Playback {
  audio: HTMLAudioElement;
}

/** The song that plays next, downloaded while another one plays. */
let ahead: { url: string; blob: Blob | null; stop: AbortController } | null = null;

/** Downloads the song that plays next. If that fails, the song is loaded when it plays. */
export async function preload(url: string): Promise<void> {
  const next = { url, blob: null as Blob | null, stop: new AbortController() };
  ahead = next;
  const response = await fetch(url, { signal: next.stop.signal }).catch(() => null);
  if (response?.ok) next.blob = await response.blob().catch(() => null);
}

/** URL of the preloaded song, or `url` if it is not here as a whole. */
function takeAhead(url: string): string {
  if (ahead?.url !== url) return url;
  const { blob, stop } = ahead;
  ahead = null;
  stop.abort();
  return blob === null ? url : URL.createObjectURL(blob);
}

interface SoundOptions {
  track: Track | null;
  onEnd: () => void;
}

export function useSound({ track, onEnd }: SoundOptions): Sound {
  const [audio] = useState(() => new Audio());
  const [state, setState] = useState<Playback>(SILENCE);
  const [attempts, setAttempts] = useState(0);
  const before = useRef<Track | null>(null);
  /** Position at which the song starts, in seconds. */
  const start = useRef(0);
  const play = useRef(() => {});
  const ended = useRef(onEnd);
  ended.current = onEnd;
  const change = (next: Partial<Playback>) =>
    setState((now) => {
      const isSame = Object.entries(next).every(([name, value]) => now[name as keyof Playback] === value);
      return isSame ? now : { ...now, ...next };
    });
  const song = track?.task.songs[track.index];
  const url = track !== null && song === undefined ? carillon.previewUrl(track.task.task_id) : song?.file;

  useEffect(() => {
    playAlone(audio);
    watch(audio, change);
    audio.addEventListener("ended", () => ended.current());
  }, []);

  useEffect(() => {
    const old = before.current;
    before.current = track;
    const length = song?.metas.duration ?? 0;
    const isSameTask = track !== null && old?.task.task_id === track.task.task_id;
    const isFinished = isSameTask && old?.task.songs.length === 0 && song !== undefined;
    // A retry starts where the failed attempt ended.
    if (old !== track) start.current = isSameTask ? audio.currentTime : (track?.start ?? 0) * length;
    // A preview plays on until its song is loaded. Any other sound stops, because the page no longer names it.
    if (!isFinished) silence(audio);
    setState(isFinished ? (now) => ({ ...now, failure: "" }) : { ...SILENCE, length });
    if (url === undefined) return;
    const stop = new AbortController();
    const { signal } = stop;
    let source = url;
    let isFailed = false;
    const fail = async () => {
      if (signal.aborted || isFailed) return;
      isFailed = true;
      start.current = audio.currentTime;
      silence(audio);
      const failure = await reasonOf(url);
      if (signal.aborted) return;
      setState({ ...SILENCE, length, failure });
      // Play still loads the song, but the server is there again.
      const forget = connection.subscribe((now) => {
        if (now === "online") setState((shown) => ({ ...shown, failure: "" }));
      });
      signal.addEventListener("abort", forget);
    };
    play.current = () => {
      // A browser may refuse to play before the first click; the button then shows Play.
      audio.play().catch((error: DOMException) => {
        if (!["NotAllowedError", "AbortError"].includes(error.name)) void fail();
      });
    };
    const begin = () => {
      if (signal.aborted) return;
      const isPaused = isFinished && audio.paused;
      if (isFinished) start.current = audio.currentTime;
      change({ length });
      // The loudness of a preview is unknown.
      setGain(audio, song === undefined ? 1 : gainOf(song));
      audio.addEventListener("error", fail, { signal });
      source = takeAhead(url);
      audio.src = source;
      audio.currentTime = start.current;
      if (!isPaused) play.current();
    };
    if (isFinished) void preload(url).then(begin);
    else begin();
    return () => {
      stop.abort();
      if (source !== url) URL.revokeObjectURL(source);
    };
  }, [url, attempts]);

  controls.toggle = () => {
    // A download that hangs is started again.
    if (!audio.hasAttribute("src") || (state.isLoading && !state.isPlaying)) setAttempts(attempts + 1);
    else if (audio.paused) play.current();
    else audio.pause();
  };
  controls.seek = (part) => {
    if (audio.hasAttribute("src")) audio.currentTime = part * state.length;
    else controls.toggle();
  };
  useEffect(() => updatePlayback(state), [state]);
  return { audio, ...state };
}

/** Reports the state of an audio element after its events, and at each frame while it plays. */
function watch(audio: HTMLAudioElement, report: (seen: Partial<Playback>) => void): void {
  let frame = 0;
  /** Whether the loaded song has sounded. */
  let isStarted = false;
  let readyMs = 0;
  const look = ({ type }: Pick<Event, "type">): void => {
    if (type === "playing" || type === "emptied") isStarted = type === "playing";
    if (audio.readyState >= audio.HAVE_FUTURE_DATA) readyMs = performance.now();
    const isLate = performance.now() - readyMs > PATIENCE_MS;
    report({
      isPlaying: !audio.paused && isStarted,
      isLoading: !audio.paused && (!isStarted || isLate),
      seconds: Math.floor(audio.currentTime / SHOWN_STEP) * SHOWN_STEP,
    });
    cancelAnimationFrame(frame);
    if (!audio.paused) frame = requestAnimationFrame(() => look({ type: "frame" }));
  };
  for (const event of ["play", "playing", "pause", "timeupdate", "loadedmetadata", "emptied"])
    audio.addEventListener(event, look);
}

function silence(audio: HTMLAudioElement): void {
  audio.pause();
  audio.removeAttribute("src");
  // Ends the download.
  audio.load();
}

/** Finds out why a song does not load. @returns a text for the user */
async function reasonOf(url: string): Promise<string> {
  const limit = { ms: REASON_MS, error: () => new Error("no answer") };
  const head = withTimeLimit(limit, (signal) => fetch(url, { method: "HEAD", signal }));
  const response = await head.catch(() => null);
  if (response === null) return t("The server cannot be reached. Press Play to try again.");
  if (response.status === 404) return t("This song cannot be played: it may have been removed.");
  return t("This song could not be loaded. Press Play to try again.");
}
