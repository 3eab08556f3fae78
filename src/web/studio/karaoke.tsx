/** Lyrics in large letters. The line that is sung stays in the middle; a press on a line moves the song there. */
import { useEffect, useRef } from "preact/hooks";
import type { Song } from "./api.js";
import { Button } from "./button.js";
import { areSungTogether, lineAt, lyricLines } from "./timed-lyrics.js";

interface KaraokeProps {
  song: Song;
  /** Position in the song. */
  seconds: number;
  onSeek: (seconds: number) => void;
}

export function Karaoke({ song, seconds, onSeek }: KaraokeProps) {
  const lines = lyricLines(song);
  const current = lineAt(lines, seconds);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const box = list.current;
    const line = box?.children[Math.max(current, 0)];
    if (box === null || !(line instanceof HTMLElement)) return;
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    box.scrollTo({ top: line.offsetTop - (box.clientHeight - line.offsetHeight) / 2, behavior });
  }, [current]);
  return (
    <ol class="karaoke" ref={list}>
      {lines.map(({ seconds: start, text }, index) => (
        <li key={index} aria-current={areSungTogether(lines, index, current) ? "true" : undefined}>
          <Button class="plain" dir="auto" onClick={() => onSeek(start)}>
            {text || "♪"}
          </Button>
        </li>
      ))}
    </ol>
  );
}
