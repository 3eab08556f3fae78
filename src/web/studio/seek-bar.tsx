/** Waveform of the song in the player, from its outline. A press or a drag seeks. */
import { useState } from "preact/hooks";
import type { Song } from "./api.js";
import { WaveformBars } from "./cover.js";

interface SeekBarProps {
  song: Song;
  /** Fraction of the song that is played, 0 to 1. */
  played: number;
  onSeek: (part: number) => void;
}

export function SeekBar({ song, played, onSeek }: SeekBarProps) {
  const [dragged, setDragged] = useState<number | null>(null);
  const drag = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setDragged(Math.min(1, Math.max(0, (event.clientX - left) / width)));
  };
  return (
    <div
      class="canvas outline"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        drag(event);
      }}
      onPointerMove={(event) => dragged !== null && drag(event)}
      onPointerUp={() => {
        // Seeks once, because each seek in a song that is still arriving is a request.
        if (dragged !== null) onSeek(dragged);
        setDragged(null);
      }}
      onPointerCancel={() => setDragged(null)}
    >
      <WaveformBars song={song} played={dragged ?? played} />
    </div>
  );
}
