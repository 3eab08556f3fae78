/** The radio's row in the player. The radio is on as long as this is shown. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";
import { connection } from "./live.js";
import { errorInWords } from "./notes.js";
import { controls } from "./playback.js";
import { type RadioMemory, stopRadio } from "./radio.js";
import { FIRST, type RadioState, RadioStation } from "./radio-station.js";
import type { Track } from "./song.js";
import { useStore } from "./store.js";

interface RadioControlsProps {
  memory: RadioMemory;
  track: Track | null;
  onTrack: (track: Track | null) => void;
}

export function RadioControls({ memory, track, onTrack }: RadioControlsProps) {
  const station = useRef<RadioStation | null>(null);
  const [state, setState] = useState(FIRST);
  const [note, setNote] = useState("");
  const isOffline = useStore(connection) === "offline";
  const { playing, isKept, progress, isAwaited } = state;
  const isRunning = useRef(false);

  useEffect(() => {
    onTrack(null);
    const made = new RadioStation(memory, onTrack, setState);
    station.current = made;
    controls.skip = () => made.skip();
    return () => {
      station.current = null;
      made.stop();
    };
  }, []);
  useEffect(() => {
    setNote("");
    // The user has chosen another song. Until the first render after the start, the one before may still be here.
    if (isRunning.current && track?.task.task_id !== playing?.task_id) stopRadio();
    isRunning.current = true;
  }, [track?.task.task_id]);

  const keep = () =>
    station.current
      ?.keep()
      .then(() => setNote(t("The song is in your library.")))
      .catch((error: unknown) => setNote(errorInWords(error)));
  return (
    <fieldset class="radio" aria-label={t("Radio")}>
      <span class="badge">{t("Radio")}</span>
      <span class="next">
        <span role="status">{note || statusOf(state, isOffline)}</span>
        {progress !== null && (
          <progress value={progress} max={1} aria-label={t("Progress of the next song")} />
        )}
      </span>
      <span class="row">
        <Button aria-pressed={isKept} disabled={playing === null || isKept} onClick={keep}>
          {isKept ? t("Kept") : t("Keep")}
        </Button>
        <Button
          disabled={playing === null}
          title={t("The next songs have its tempo and key")}
          onClick={() => {
            if (playing === null) return;
            station.current?.makeMoreLike(playing);
            setNote(t("The next songs are like this one."));
          }}
        >
          {t("More like this")}
        </Button>
        <Button disabled={isAwaited} onClick={() => controls.skip()}>
          {t("Skip")}
        </Button>
      </span>
    </fieldset>
  );
}

function statusOf({ playing, progress, isAwaited, problem }: RadioState, isOffline: boolean): string {
  if (problem !== "" || isOffline) {
    return t("{problem} The radio tries again.", { problem: problem || t("The server cannot be reached.") });
  }
  if (playing === null) return t("The first song is being made.");
  if (isAwaited) return t("The next song is not ready yet. It plays as soon as it is made.");
  return progress === null ? t("The next song is ready.") : t("The next song is being made.");
}
