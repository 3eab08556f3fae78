/** Loads and plays the song in the player. What the page names is what sounds: a song that fails to load stops the other. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import { carillon } from "./api.js";
import { t } from "./language.js";
import { gainOf, setGain } from "./loudness.js";
import { controls, type Playback, SHOWN_STEP, SILENCE, updatePlayback } from "./playback.js";
import type { Track } from "./song.js";
import { watchTheme } from "./theme.js";

const PREVIEW_MAX_SECONDS = 240;

const loadWaveform = () => import("./waveform.js");

export interface Sound extends Playback {
  /** Null until the first song. */
  wave: WaveSurfer | null;
}

interface LoadedSong {
  blob: Blob;
  channels: Float32Array[];
  seconds: number;
}

/** The song that plays next, loaded while another one plays. */
let ahead: { url: string; song: Promise<LoadedSong> } | null = null;

export function preload(url: string): void {
  const song = loadSong(url, new AbortController().signal, () => {});
  ahead = { url, song };
  song.catch(() => {
    // It is loaded again when it is its turn.
    if (ahead?.song === song) ahead = null;
  });
}

interface SoundOptions {
  track: Track | null;
  container: RefObject<HTMLElement | null>;
  onEnd: () => void;
}

export function useSound({ track, container, onEnd }: SoundOptions): Sound {
  const [wave, setWave] = useState<WaveSurfer | null>(null);
  const [state, setState] = useState<Playback>(SILENCE);
  const [attempts, setAttempts] = useState(0);
  const before = useRef<Track | null>(null);
  /** Position at which the song starts, in seconds or as a fraction of its length. */
  const start = useRef<{ seconds: number } | { part: number }>({ seconds: 0 });
  const ended = useRef(onEnd);
  ended.current = onEnd;
  const change = (next: Partial<Playback>) => setState((now) => ({ ...now, ...next }));
  const isUsed = track !== null;
  const song = track?.task.songs[track.index];
  const url = track !== null && song === undefined ? carillon.previewUrl(track.task.task_id) : song?.file;

  useEffect(() => {
    // Loaded before the first song is chosen, once the page is shown and has nothing else to load.
    (window.requestIdleCallback ?? setTimeout)(() => void loadWaveform().catch(() => {}));
  }, []);

  useEffect(() => {
    if (!isUsed || wave !== null) return;
    change({ isLoading: true });
    loadWaveform().then(
      ({ makeWave, waveColors }) => {
        const made = makeWave(container.current, { height: 48, dragToSeek: true });
        made.on("play", () => change({ isPlaying: true }));
        made.on("pause", () => change({ isPlaying: false }));
        made.on("timeupdate", (time) => {
          const seconds = Math.floor(time / SHOWN_STEP) * SHOWN_STEP;
          setState((now) => (now.seconds === seconds ? now : { ...now, seconds }));
        });
        made.on("finish", () => ended.current());
        watchTheme(() => made.setOptions(waveColors()));
        setWave(made);
      },
      () => change({ isLoading: false, failure: unreachable() }),
    );
  }, [isUsed, attempts]);

  useEffect(() => {
    if (wave === null) return;
    const old = before.current;
    const isSameTask = track !== null && old?.task.task_id === track.task.task_id;
    const isFinished = isSameTask && old?.task.songs.length === 0 && song !== undefined;
    const wasPlaying = wave.isPlaying();
    if (old !== track) {
      // A retry starts where the failed attempt should have started.
      start.current = isSameTask ? { seconds: wave.getCurrentTime() } : { part: track?.start ?? 0 };
    }
    before.current = track;
    // A preview plays on until its song is loaded. Any other sound stops, because the page no longer names it.
    if (!isFinished) silence(wave);
    setState(isFinished ? (now) => ({ ...now, failure: "" }) : { ...SILENCE, isLoading: url !== undefined });
    if (url === undefined) return;
    const stop = new AbortController();
    const { signal } = stop;
    const fail = (failure: string) => {
      if (signal.aborted) return;
      silence(wave);
      setState({ ...SILENCE, failure });
    };
    const unwatch = wave.on("error", () => fail(unloadable()));
    const play = () => {
      if (signal.aborted) return;
      change({ isLoading: false, length: wave.getDuration() });
      // A browser may refuse to play before the first click; the button then shows Play.
      if (!isFinished || wasPlaying) wave.play().catch(() => {});
    };
    wave.setOptions({ interact: song !== undefined });
    if (song === undefined) {
      // The length, the shape and the loudness of a preview are unknown.
      setGain(wave, 1);
      wave.load(url, [new Float32Array(2)], PREVIEW_MAX_SECONDS).then(play, () => fail(unloadable()));
    } else {
      const onPart = (received: number) => signal.aborted || change({ received });
      (ahead?.url === url ? ahead.song : loadSong(url, signal, onPart))
        .then(async ({ blob, channels, seconds }) => {
          if (signal.aborted) return;
          setGain(wave, gainOf(song, channels));
          const from = start.current;
          const at = isFinished ? wave.getCurrentTime() : "part" in from ? from.part * seconds : from.seconds;
          await wave.loadBlob(blob, channels, seconds);
          wave.setTime(at);
          play();
        })
        .catch((error: unknown) => fail(error instanceof LoadError ? error.message : unloadable()));
    }
    return () => {
      stop.abort();
      unwatch();
    };
  }, [wave, url, attempts]);

  controls.toggle = () => {
    // A download that hangs is started again.
    if (state.failure !== "" || state.isLoading) setAttempts(attempts + 1);
    else void wave?.playPause().catch(() => {});
  };
  controls.seek = (part) => (state.failure === "" ? wave?.seekTo(part) : controls.toggle());
  useEffect(() => updatePlayback(state), [state]);
  return { wave, ...state };
}

function silence(wave: WaveSurfer): void {
  wave.pause();
  wave.empty();
}

const unreachable = () => t("The server cannot be reached. Press Play to try again.");
const unloadable = () => t("This song could not be loaded. Press Play to try again.");
const removed = () => t("This song cannot be played: it may have been removed.");

class LoadError extends Error {}

/** Downloads a song and decodes the audio that its waveform is drawn from. @throws LoadError with a text for the user */
async function loadSong(
  url: string,
  signal: AbortSignal,
  onPart: (received: number) => void,
): Promise<LoadedSong> {
  const { WAVEFORM_SAMPLE_RATE_HZ } = await loadWaveform();
  const response = await fetch(url, { signal }).catch(() => {
    throw new LoadError(unreachable());
  });
  if (!response.ok) throw new LoadError(response.status === 404 ? removed() : unloadable());
  const blob = await received(response, onPart).catch(() => {
    throw new LoadError(unreachable());
  });
  const context = new OfflineAudioContext(1, 1, WAVEFORM_SAMPLE_RATE_HZ);
  const audio = await context.decodeAudioData(await blob.arrayBuffer());
  const channels = Array.from({ length: audio.numberOfChannels }, (_, index) => audio.getChannelData(index));
  return { blob, channels, seconds: audio.duration };
}

/** The body of a response. `onPart` is called with the part of it that has arrived, 0 to 1. */
async function received(response: Response, onPart: (part: number) => void): Promise<Blob> {
  const total = Number(response.headers.get("content-length"));
  const reader = response.body?.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (;;) {
    const piece = (await reader?.read())?.value;
    if (piece === undefined) break;
    pieces.push(piece);
    bytes += piece.length;
    if (total > 0) onPart(Math.min(1, bytes / total));
  }
  return new Blob(pieces, { type: response.headers.get("content-type") ?? "" });
}
