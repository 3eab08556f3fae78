/** The player. Switching between versions of a task keeps the position. */
import { useEffect, useRef, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import { carillon } from "./api.js";
import { Icon, RoundButton } from "./icons.js";
import { t } from "./language.js";
import { controls, updatePlayback } from "./playback.js";
import { Download, lyricLineAt, songName, type Track, versionLetter } from "./song.js";
import { watchTheme } from "./theme.js";
import { useMediaSession, usePlayerKeys, Volume } from "./transport.js";
import { makeWave, SpectrogramButton, WAVEFORM_SAMPLE_RATE_HZ, waveColors } from "./wave.js";
import { formatTime } from "./words.js";

const unplayable = () => t("This song cannot be played: it may have been removed.");
const PREVIEW_MAX_SECONDS = 240;
/**
 * Step of the shown time in seconds. wavesurfer reports the time at every frame, which would re-render too
 * often.
 */
const SHOWN_STEP = 0.1;
const unfinished = () => ({
  queued: "",
  running: `· ${t("still being made")}`,
  succeeded: "",
  failed: `· ${t("was not finished")}`,
});

interface PlayerProps {
  track: Track | null;
  onTrack: (track: Track | null) => void;
  /** Plays the next song (1) or the previous one (-1), if there is one. */
  onStep: (by: 1 | -1) => void;
}

export function Player({ track, onTrack, onStep }: PlayerProps) {
  const container = useRef<HTMLDivElement>(null);
  const wave = useRef<WaveSurfer | null>(null);
  const before = useRef<Track | null>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [time, setTime] = useState(0);
  const [length, setLength] = useState(0);
  const [failure, setFailure] = useState("");
  const [isRepeating, setRepeating] = useState(false);
  const ended = useRef(() => {});
  ended.current = () => {
    if (isRepeating) void wave.current?.play();
    else onStep(1);
  };
  useEffect(() => updatePlayback({ isPlaying, seconds: time, length }), [isPlaying, time, length]);
  usePlayerKeys(wave);
  useMediaSession({ track, wave, isPlaying, onStep });

  useEffect(() => {
    const made = makeWave(container.current, { height: 48, dragToSeek: true });
    made.on("play", () => setPlaying(true));
    made.on("pause", () => setPlaying(false));
    made.on("timeupdate", (seconds) => setTime(Math.floor(seconds / SHOWN_STEP) * SHOWN_STEP));
    made.on("ready", setLength);
    made.on("finish", () => ended.current());
    controls.toggle = () => void made.playPause();
    controls.seek = (part) => made.seekTo(part);
    made.on("error", () => setFailure(unplayable()));
    wave.current = made;
    const unwatch = watchTheme(() => made.setOptions(waveColors()));
    return () => {
      unwatch();
      made.destroy();
    };
  }, []);

  const song = track?.task.songs[track.index];
  const isPreview = track !== null && song === undefined;
  const url = isPreview ? carillon.previewUrl(track.task.task_id) : song?.file;
  useEffect(() => {
    const player = wave.current;
    if (player === null) return;
    const isSameTask = before.current?.task.task_id === track?.task.task_id;
    const wasPreview = isSameTask && before.current?.task.songs.length === 0;
    before.current = track;
    setFailure("");
    if (url === undefined) {
      player.empty();
      player.pause();
      return;
    }
    player.setOptions({ interact: !isPreview });
    if (isPreview) {
      playPreview(player, url);
      return;
    }
    let isOver = false;
    // The preview plays on until the song is loaded, then the song continues at the same position.
    loadSong(url).then(
      ({ blob, channels, seconds }) => {
        if (isOver) return;
        const at = isSameTask ? player.getCurrentTime() : (track?.start ?? 0) * seconds;
        const isHeard = !wasPreview || player.isPlaying();
        return player.loadBlob(blob, channels, seconds).then(() => {
          player.setTime(at);
          return isHeard ? player.play() : undefined;
        });
      },
      () => isOver || setFailure(unplayable()),
    );
    return () => {
      isOver = true;
    };
  }, [url]);

  return (
    <section class={track === null ? "player idle" : "player"} aria-label={t("Player")}>
      <button
        type="button"
        class="play"
        aria-label={isPlaying ? t("Pause") : t("Play")}
        onClick={() => void wave.current?.playPause()}
      >
        <Icon name={isPlaying ? "pause" : "play"} />
      </button>
      {track && song && (
        <span class="row steps">
          <RoundButton icon="previous" label={t("Previous song")} onClick={() => onStep(-1)} />
          <RoundButton icon="next" label={t("Next song")} onClick={() => onStep(1)} />
          <RoundButton
            icon="repeat"
            label={t("Repeat")}
            aria-pressed={isRepeating}
            onClick={() => setRepeating(!isRepeating)}
          />
        </span>
      )}
      <div class="about">
        <span class="name" dir="auto">
          {track ? songName(track.task) : ""}
        </span>
        <span class="faint facts">
          {failure ||
            `${formatTime(time)} ${isPreview ? unfinished()[track.task.state] : `/ ${formatTime(length)}`}`}
        </span>
      </div>
      <div class="canvas" ref={container} />
      {song?.lrc && <p class="sung">{lyricLineAt(song, time)}</p>}
      {track && track.task.songs.length > 1 && (
        <fieldset class="row" aria-label={t("Versions")}>
          {track.task.songs.map(({ file }, index) => (
            <button
              type="button"
              class="tag"
              key={file}
              aria-pressed={index === track.index}
              aria-label={t("Version {letter}", { letter: versionLetter(index) })}
              onClick={() => onTrack({ ...track, index })}
            >
              {versionLetter(index)}
            </button>
          ))}
        </fieldset>
      )}
      <SpectrogramButton wave={wave.current} label={t("the song that plays")} />
      <Volume wave={wave} />
      {track && song && <Download name={songName(track.task)} song={song} />}
      <RoundButton class="close" icon="close" label={t("Close player")} onClick={() => onTrack(null)} />
    </section>
  );
}

/** Plays a preview with a placeholder waveform, because its length and shape are unknown. */
function playPreview(player: WaveSurfer, url: string): void {
  player.load(url, [new Float32Array(2)], PREVIEW_MAX_SECONDS).then(
    () => player.play(),
    () => {},
  );
}

/** Downloads a song and decodes the audio that its waveform is drawn from. */
async function loadSong(url: string): Promise<{ blob: Blob; channels: Float32Array[]; seconds: number }> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(unplayable());
  const blob = await response.blob();
  const context = new OfflineAudioContext(1, 1, WAVEFORM_SAMPLE_RATE_HZ);
  const audio = await context.decodeAudioData(await blob.arrayBuffer());
  const channels = Array.from({ length: audio.numberOfChannels }, (_, index) => audio.getChannelData(index));
  return { blob, channels, seconds: audio.duration };
}
