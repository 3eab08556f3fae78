/** Controls of the player besides its buttons: keys, media keys, volume. */

import { useEffect, useRef, useState } from "preact/hooks";
import { RoundButton } from "./button.js";
import { Icon } from "./icons.js";
import { keepText, readText } from "./kept.js";
import { t } from "./language.js";
import { setUserVolume } from "./loudness.js";
import { controls } from "./playback.js";
import { songName, type Track } from "./song.js";

const VOLUME_ITEM = "carillon-volume";
const STEP_SECONDS = 5;
const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -STEP_SECONDS, ArrowRight: STEP_SECONDS };

/** Space plays and pauses, arrow keys seek, unless a focused control uses the key. */
export function usePlayerKeys(audio: HTMLAudioElement, isUsed: boolean): void {
  useEffect(() => {
    if (!isUsed) return;
    const onKey = (event: KeyboardEvent) => {
      const isTaken = event.target instanceof Element && event.target.closest(TAKES_KEYS) !== null;
      if (isTaken || event.ctrlKey || event.metaKey) return;
      const step = STEPS[event.key];
      if (event.key === " ") controls.toggle();
      else if (step !== undefined) audio.currentTime += step;
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [isUsed]);
}

const TAKES_KEYS = "input, textarea, select, button, a, summary, [role=slider], [contenteditable]";

interface MediaSessionOptions {
  track: Track | null;
  audio: HTMLAudioElement;
  isPlaying: boolean;
  onStep: (by: 1 | -1) => void;
}

/** Connects the player to media keys, headsets and the lock screen. */
export function useMediaSession({ track, audio, isPlaying, onStep }: MediaSessionOptions): void {
  const session = navigator.mediaSession;
  const name = track ? songName(track.task) : "";
  useEffect(() => {
    if (session === undefined) return;
    session.metadata = name === "" ? null : new MediaMetadata({ title: name, artist: "Carillon" });
    session.playbackState = name === "" ? "none" : isPlaying ? "playing" : "paused";
    session.setActionHandler("play", () => isPlaying || controls.toggle());
    session.setActionHandler("pause", () => audio.pause());
    session.setActionHandler("nexttrack", () => onStep(1));
    session.setActionHandler("previoustrack", () => onStep(-1));
  });
}

const SLEEP_MINUTES = [15, 30, 60, 90];

/** Calls `onSleep` after the chosen time. */
export function SleepTimer({ onSleep }: { onSleep: () => void }) {
  const [minutes, setMinutes] = useState(0);
  const latest = useRef(onSleep);
  latest.current = onSleep;
  useEffect(() => {
    if (minutes === 0) return;
    const timer = setTimeout(() => {
      setMinutes(0);
      latest.current();
    }, minutes * 60_000);
    return () => clearTimeout(timer);
  }, [minutes]);
  return (
    <label class="sleep" title={t("Sleep timer")}>
      <Icon name="dark" />
      {minutes > 0 && minutes}
      <select
        aria-label={t("Sleep timer")}
        value={minutes}
        onChange={(event) => setMinutes(Number(event.currentTarget.value))}
      >
        <option value={0}>{t("No sleep timer")}</option>
        {SLEEP_MINUTES.map((count) => (
          <option key={count} value={count}>
            {t("Stop after {count} min", { count })}
          </option>
        ))}
      </select>
    </label>
  );
}

function storedVolume(): number {
  const volume = Number(readText(VOLUME_ITEM) ?? 1);
  return volume >= 0 && volume <= 1 ? volume : 1;
}

export function Volume({ audio }: { audio: HTMLAudioElement }) {
  const [volume, setVolume] = useState(storedVolume);
  const [isMuted, setMuted] = useState(false);
  useEffect(() => {
    setUserVolume(audio, volume);
    audio.muted = isMuted;
  }, [volume, isMuted]);
  return (
    <span class="row volume">
      <RoundButton
        icon={isMuted ? "muted" : "volume"}
        label={t("Mute")}
        aria-pressed={isMuted}
        onClick={() => setMuted(!isMuted)}
      />
      <input
        type="range"
        aria-label={t("Volume")}
        min={0}
        max={1}
        step={0.05}
        value={volume}
        onInput={(event) => {
          // Store the volume at once: an effect might not run before the page is left.
          keepText(VOLUME_ITEM, event.currentTarget.value);
          setVolume(Number(event.currentTarget.value));
        }}
      />
    </span>
  );
}
