/** An empty library: songs to hear at once, and moods that start the radio. */
import type { Song, Task } from "./api.js";
import { Button } from "./button.js";
import { CoverPicture } from "./cover.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { controls, usePlayback } from "./playback.js";
import { startRadio } from "./radio.js";
import type { Track } from "./song.js";
import songs from "./songs/songs.json";

const names = (): Record<string, string> => ({
  "lo-fi": t("Late at the window"),
  house: t("Lights of the city"),
  bossa: t("Sunday by the sea"),
});

/** Moods with prompts in English, which all models understand. */
const moods = (): [string, string][] => [
  [t("To study"), "lo-fi, warm electric piano, soft drums, mellow bass, 76 bpm"],
  [t("To dance"), "upbeat house, driving bass, bright synth chords, 124 bpm"],
  [t("A slow evening"), "slow jazz, piano, upright bass, brushed drums, 80 bpm"],
  [t("Night drive"), "synthwave, analog synths, driving drums, 100 bpm"],
  [t("To dream"), "ambient, soft pads, slow and calm, 60 bpm"],
  [t("An adventure"), "cinematic, strings, horns, large drums, 90 bpm"],
];

interface FirstMinuteProps {
  /** Whether the first song is being made. */
  isMaking: boolean;
  track: Track | null;
  onPlay: (track: Track) => void;
  /** Puts a description into the form. */
  onDescribe: (prompt: string) => void;
}

export function FirstMinute({ isMaking, track, onPlay, onDescribe }: FirstMinuteProps) {
  return (
    <>
      <p>
        {isMaking
          ? t("Your first song is on its way. Until then, hear what the built-in model makes:")
          : t("No songs yet. Hear what the built-in model makes:")}
      </p>
      <ul class="examples">
        {examples().map((task) => (
          <Example key={task.task_id} task={task} track={track} onPlay={onPlay} />
        ))}
      </ul>
      <p>{t("Or press a mood, and a radio plays new songs for it:")}</p>
      <div class="tags">
        {moods().map(([name, prompt]) => (
          <Button
            class="tag"
            key={name}
            title={prompt}
            onClick={() => {
              onDescribe(prompt);
              startRadio({ prompt });
            }}
          >
            {name}
          </Button>
        ))}
      </div>
    </>
  );
}

function Example({ task, track, onPlay }: Pick<FirstMinuteProps, "track" | "onPlay"> & { task: Task }) {
  const isCurrent = track?.task.task_id === task.task_id;
  const { isPlaying } = usePlayback(isCurrent);
  const isHeard = isCurrent && isPlaying;
  const name = task.title;
  return (
    <li>
      <Button
        class="play cover"
        aria-label={isHeard ? t("Pause {name}", { name }) : t("Play {name}", { name })}
        onClick={() => (isCurrent ? controls.toggle() : onPlay({ task, index: 0 }))}
      >
        <CoverPicture song={task.songs[0] as Song} />
        <Icon name={isHeard ? "pause" : "play"} />
      </Button>
      {name}
    </li>
  );
}

/** Songs of the page as tasks. They are temporary, so the player does not miss them on the server. */
function examples(): Task[] {
  return songs.map(({ name, ...song }) => {
    const file = `/studio/songs/${name}.mp3`;
    const task = { task_id: name, title: names()[name], temporary: true, state: "succeeded" };
    return { ...task, songs: [{ ...song, file }] } as unknown as Task;
  });
}
