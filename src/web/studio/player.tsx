/** Plays one song below everything else; versions of one task are compared at the same moment. */
import { useEffect, useRef, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import { withKey } from "./api.js";
import { Download, letterOf, lineAt, nameOf, type Track } from "./song.js";
import { makeWave, PICTURE_RATE_HZ, SpectrogramButton, waveColors } from "./wave.js";
import { clock } from "./words.js";

const UNPLAYABLE = "This song cannot be played: it may have been removed.";
/** What the service keeps of a song to be heard. */
const PREVIEW_MAX_SECONDS = 240;
const UNFINISHED = { queued: "", running: "· still being made", succeeded: "", failed: "· was not finished" };

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
    const made = makeWave(container.current, { height: 48, dragToSeek: true });
    made.on("play", () => setPlaying(true));
    made.on("pause", () => setPlaying(false));
    made.on("timeupdate", setTime);
    made.on("ready", setLength);
    made.on("error", () => setFailure(UNPLAYABLE));
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
  const isPreview = track !== null && song === undefined;
  const url = isPreview ? `/v1/tasks/${track.task.task_id}/preview` : song?.file;
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
      playPreview(player, withKey(url));
      return;
    }
    let isOver = false;
    // What plays goes on until the song is here, which then goes on with it.
    arrival(withKey(url)).then(
      ({ blob, channels, seconds }) => {
        if (isOver) return;
        const at = isSameTask ? player.getCurrentTime() : 0;
        const isHeard = !wasPreview || player.isPlaying();
        return player.loadBlob(blob, channels, seconds).then(() => {
          player.setTime(at);
          return isHeard ? player.play() : undefined;
        });
      },
      () => isOver || setFailure(UNPLAYABLE),
    );
    return () => {
      isOver = true;
    };
  }, [url]);

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
        <span class="faint facts">
          {failure || `${clock(time)} ${isPreview ? UNFINISHED[track.task.state] : `/ ${clock(length)}`}`}
        </span>
      </div>
      <div class="canvas" ref={container} />
      {song?.lrc && <p class="sung">{lineAt(song, time)}</p>}
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

/** Nobody knows yet what it looks like, nor how long it will be. */
function playPreview(player: WaveSurfer, url: string): void {
  player.load(url, [new Float32Array(2)], PREVIEW_MAX_SECONDS).then(
    () => player.play(),
    () => {},
  );
}

/** A song and what its waveform is drawn of. */
async function arrival(url: string): Promise<{ blob: Blob; channels: Float32Array[]; seconds: number }> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(UNPLAYABLE);
  const blob = await response.blob();
  const context = new OfflineAudioContext(1, 1, PICTURE_RATE_HZ);
  const audio = await context.decodeAudioData(await blob.arrayBuffer());
  const channels = Array.from({ length: audio.numberOfChannels }, (_, index) => audio.getChannelData(index));
  return { blob, channels, seconds: audio.duration };
}
