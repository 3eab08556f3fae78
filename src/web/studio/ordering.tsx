/** Orders the songs of a playlist by drag or arrow keys, and removes them from it. */

import type { ComponentChildren } from "preact";
import type { Task } from "./api.js";
import { RoundButton } from "./button.js";
import { t } from "./language.js";
import { moveId } from "./playlists.js";
import { songName } from "./song.js";

const DRAGGED = "application/x-carillon-song";

interface OrderingProps {
  task: Task;
  ids: readonly string[];
  onOrder: (ids: readonly string[]) => void;
  children: ComponentChildren;
}

export function PlaylistOrdering({ task, ids, onOrder, children }: OrderingProps) {
  const id = task.task_id;
  const index = ids.indexOf(id);
  const song = songName(task);
  return (
    <fieldset
      class="ordering"
      aria-label={song}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes(DRAGGED)) event.preventDefault();
      }}
      onDrop={(event) => {
        const dragged = event.dataTransfer?.getData(DRAGGED) ?? "";
        if (!ids.includes(dragged)) return;
        event.preventDefault();
        onOrder(moveId(ids, dragged, index));
      }}
    >
      <RoundButton
        class="handle"
        draggable
        label={t("Move {song}: arrow up, arrow down", { song })}
        onDragStart={(event) => event.dataTransfer?.setData(DRAGGED, id)}
        onKeyDown={(event) => {
          const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          onOrder(moveId(ids, id, index + step));
        }}
      >
        ⠿
      </RoundButton>
      {children}
      <RoundButton
        label={t("Remove {song} from the playlist", { song })}
        onClick={() => {
          document.getElementById("library-title")?.focus();
          onOrder(ids.filter((other) => other !== id));
        }}
      >
        ✕
      </RoundButton>
    </fieldset>
  );
}
