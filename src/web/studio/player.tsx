/** The player. Switching between versions of a task keeps the position. */
import { useState } from "preact/hooks";
import { Button, RoundButton } from "./button.js";
import { Icon } from "./icons.js";
import { Karaoke } from "./karaoke.js";
import { t } from "./language.js";
import { lazy } from "./lazy.js";
import { controls } from "./playback.js";
import { radio, stopRadio } from "./radio.js";
import { SeekBar } from "./seek-bar.js";
import { Download, songName, type Track, versionLetter } from "./song.js";
import { useSound } from "./sound.js";
import { AnalysedSong, SpectrogramToggle } from "./spectrogram.js";
import { useStore } from "./store.js";
import { lineAt, lyricLines } from "./timed-lyrics.js";
import { SleepTimer, useMediaSession, usePlayerKeys, Volume } from "./transport.js";
import { formatTime } from "./words.js";

const RadioControls = lazy(() => import("./lazy-parts.js").then((module) => module.RadioControls));

/** Folder of the songs that the page brings along, which need no download. */
const PAGE_FILES = "/studio/";

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
  const [isRepeating, setRepeating] = useState(false);
  const [showsWords, setShowsWords] = useState(false);
  const [showsSpectrogram, setShowsSpectrogram] = useState(false);
  const station = useStore(radio);
  const step = (by: 1 | -1) => {
    if (station === null) onStep(by);
    else if (by === 1) controls.skip();
    else controls.seek(0);
  };
  const close = () => {
    stopRadio();
    onTrack(null);
  };
  const sound = useSound({
    track,
    onEnd: () => (isRepeating && station === null ? controls.toggle() : step(1)),
  });
  const { audio, isPlaying, isLoading, failure, seconds: time, length } = sound;
  const song = track?.task.songs[track.index];
  const isPreview = track !== null && song === undefined;
  usePlayerKeys(audio, track !== null);
  useMediaSession({ track, audio, isPlaying, onStep: step });
  const position = `${formatTime(time)} ${isPreview ? unfinished()[track.task.state] : `/ ${formatTime(length)}`}`;

  const lines = song === undefined ? [] : lyricLines(song);
  const waiting = station === null ? "idle" : "waiting";
  return (
    <section
      class={`player ${track === null ? waiting : ""} ${failure === "" ? "" : "unloaded"}`}
      aria-label={t("Player")}
    >
      {station && <RadioControls key={station.startedMs} memory={station} track={track} onTrack={onTrack} />}
      <Button class="play" aria-label={isPlaying ? t("Pause") : t("Play")} onClick={() => controls.toggle()}>
        <Icon name={isPlaying ? "pause" : "play"} />
      </Button>
      {track && song && station === null && (
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
        <span class="name" dir="auto" title={track ? songName(track.task) : ""}>
          {track ? songName(track.task) : ""}
        </span>
        <span class="failed" role="status">
          {failure}
        </span>
        {failure === "" && <span class="faint facts">{isLoading ? t("Loading…") : position}</span>}
      </div>
      {song && showsSpectrogram && (
        <AnalysedSong key={song.file} audio={audio} onFail={() => setShowsSpectrogram(false)} />
      )}
      {song && !showsSpectrogram && (
        <SeekBar song={song} played={length > 0 ? time / length : 0} onSeek={(part) => controls.seek(part)} />
      )}
      {lines.length > 0 && (
        <Button
          class="plain sung"
          dir="auto"
          aria-expanded={showsWords}
          title={t("All words")}
          onClick={() => setShowsWords(!showsWords)}
        >
          {lines[lineAt(lines, time)]?.text || "♪"}
        </Button>
      )}
      {showsWords && song && lines.length > 0 && (
        <Karaoke song={song} seconds={time} onSeek={(seconds) => controls.seek(seconds / length)} />
      )}
      {track && track.task.songs.length > 1 && (
        <fieldset class="row" aria-label={t("Versions")}>
          {track.task.songs.map(({ file }, index) => (
            <Button
              class="tag"
              key={file}
              aria-pressed={index === track.index}
              aria-label={t("Version {letter}", { letter: versionLetter(index) })}
              onClick={() => onTrack({ ...track, index })}
            >
              {versionLetter(index)}
            </Button>
          ))}
        </fieldset>
      )}
      {song && (
        <SpectrogramToggle
          isShown={showsSpectrogram}
          label={t("the song that plays")}
          onToggle={() => setShowsSpectrogram(!showsSpectrogram)}
        />
      )}
      <SleepTimer onSleep={() => (isPlaying ? audio.pause() : station !== null && close())} />
      <Volume audio={audio} />
      {track && song && !song.file.startsWith(PAGE_FILES) && (
        <Download name={songName(track.task)} song={song} />
      )}
      <RoundButton class="close" icon="close" label={t("Close player")} onClick={close} />
    </section>
  );
}
