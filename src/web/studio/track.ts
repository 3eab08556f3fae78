/** The song that plays, as the service has it now: it may be renamed or removed elsewhere. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, type Task } from "./api.js";
import type { Live } from "./live.js";
import type { Track } from "./song.js";

/** @param onGone is told of a song that was removed while it was in the player */
export function useTrack(
  { library, connection }: Live,
  onGone: (task: Task) => void,
): [Track | null, (track: Track | null) => void] {
  const [track, setTrack] = useState<Track | null>(null);
  const id = track?.task.task_id;
  useEffect(() => {
    if (track === null || connection !== "online") return;
    let isOver = false;
    const take = (task: Task) => setTrack((now) => now && { ...now, task });
    const known = library.find((task) => task.task_id === id);
    if (known !== undefined) {
      take(known);
      return;
    }
    call<Task>("GET", `/v1/tasks/${id}`).then(
      (task) => isOver || take(task),
      (error: unknown) => {
        // All else shows in the state of the connection.
        if (isOver || !(error instanceof ApiError) || error.status !== 404) return;
        setTrack(null);
        onGone(track.task);
      },
    );
    return () => {
      isOver = true;
    };
  }, [library, id, connection]);
  return [track, setTrack];
}
