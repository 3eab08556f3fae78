/** Plays one song below everything else; versions of one task are compared at the same moment. */
import { useEffect, useRef, useState } from "preact/hooks";
import WaveSurfer from "wavesurfer.js";
import { withKey } from "./api.js";
import { Download, letterOf, nameOf, type Track } from "./song.js";
import { PICTURE_RATE_HZ, SpectrogramButton, waveColors } from "./wave.js";
import { clock } from "./words.js";

interface PlayerProps {
  track: Track | null;
  onTrack: (track: Track | null) => void;
}

export function Player({ track, onTrack }: PlayerProps) {
  const container = useRef<HTMLDivElement>(null);
  const wave = useRef<WaveSurfer | null>(null);
  const before = useRef<Track | null>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [time, setTime] = useState(0);
  const [length, setLength] = useState(0);
  const [failure, setFailure] = useState("");

  useEffect(() => {
    const made = WaveSurfer.create({
      container: container.current as HTMLDivElement,
      height: 48,
      barWidth: 2,
      barGap: 1,
      barRadius: 1,
      normalize: true,
      sampleRate: PICTURE_RATE_HZ,
      dragToSeek: true,
      ...waveColors(),
    });
    made.on("play", () => setPlaying(true));
    made.on("pause", () => setPlaying(false));
    made.on("timeupdate", setTime);
    made.on("ready", setLength);
    made.on("error", () => setFailure("This song cannot be played: it may have been removed."));
    wave.current = made;
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolor = () => made.setOptions(waveColors());
    scheme.addEventListener("change", recolor);
    return () => {
      scheme.removeEventListener("change", recolor);
      made.destroy();
    };
  }, []);

  const song = track?.task.songs[track.index];
  useEffect(() => {
    const player = wave.current;
    if (player === null) return;
    const isVersion = before.current?.task.task_id === track?.task.task_id;
    before.current = track;
    setFailure("");
    if (song === undefined) {
      player.empty();
      player.pause();
      return;
    }
    const at = isVersion ? player.getCurrentTime() : 0;
    player.load(withKey(song.file)).then(
      () => {
        player.setTime(at);
        return player.play();
      },
      () => {},
    );
  }, [song?.file]);

  return (
    <section class={track === null ? "player idle" : "player"} aria-label="Player">
      <button
        type="button"
        class="play"
        aria-label={isPlaying ? "Pause" : "Play"}
        onClick={() => void wave.current?.playPause()}
      >
        {isPlaying ? "❚❚" : "▶"}
      </button>
      <div class="about">
        <span class="name">{track ? nameOf(track.task) : ""}</span>
        <span class="faint facts">{failure || `${clock(time)} / ${clock(length)}`}</span>
      </div>
      <div class="canvas" ref={container} />
      {track && track.task.songs.length > 1 && (
        <fieldset class="row" aria-label="Versions">
          {track.task.songs.map(({ file }, index) => (
            <button
              type="button"
              class="tag"
              key={file}
              aria-pressed={index === track.index}
              aria-label={`Version ${letterOf(index)}`}
              onClick={() => onTrack({ ...track, index })}
            >
              {letterOf(index)}
            </button>
          ))}
        </fieldset>
      )}
      <SpectrogramButton wave={wave.current} label="the song that plays" />
      {track && song && <Download name={nameOf(track.task)} song={song} />}
      <button type="button" class="plain" aria-label="Close player" onClick={() => onTrack(null)}>
        ✕
      </button>
    </section>
  );
}
