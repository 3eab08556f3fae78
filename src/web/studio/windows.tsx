/** Windows of a recording that one repaint task replaces. */
import type { Parameters } from "./api.js";
import { Button } from "./button.js";
import { t } from "./language.js";
import { formatTime, type TimeRange } from "./words.js";

/** Start and end in seconds, as in the API. An end of 0 means the end of the recording. */
type Pair = readonly [start: number, end: number];

interface RepaintWindowsProps {
  values: Parameters;
  /** Selected part of the recording. */
  window: TimeRange;
  set: (change: Parameters) => void;
}

export function RepaintWindows({ values, window, set }: RepaintWindowsProps) {
  const windows = (values.repainting_windows ?? []) as readonly Pair[];
  const isSelected = window.start !== 0 || window.end !== 0;
  return (
    <div class="row wide">
      {windows.map(([start, end], index) => {
        const name = `${formatTime(start)} – ${end === 0 ? t("end") : formatTime(end)}`;
        return (
          <Button
            class="tag"
            key={name}
            aria-label={t("Remove {name}", { name })}
            onClick={() => set({ repainting_windows: windows.filter((_, other) => other !== index) })}
          >
            {name} ✕
          </Button>
        );
      })}
      <Button
        disabled={!isSelected}
        onClick={() =>
          set({
            repainting_windows: [...windows, [window.start, window.end]],
            repainting_start: null,
            repainting_end: null,
          })
        }
      >
        {t("Keep this part, select another")}
      </Button>
    </div>
  );
}
