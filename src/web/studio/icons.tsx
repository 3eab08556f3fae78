/** Icons on a grid of 24, drawn with the colour of the text. */
const PATHS = {
  play: "M8 5.5v13l11-6.5z",
  pause: "M7 5h4v14H7zM13 5h4v14h-4z",
  next: "M5 5.5v13l9-6.5zM16 5h3v14h-3z",
  previous: "M19 5.5v13L10 12zM5 5h3v14H5z",
  star: "M12 3.6l2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9L3.5 9.8l5.9-.8z",
  more: "M5 10.3a1.8 1.8 0 100 3.5 1.8 1.8 0 000-3.5zM12 10.3a1.8 1.8 0 100 3.5 1.8 1.8 0 000-3.5zM19 10.3a1.8 1.8 0 100 3.5 1.8 1.8 0 000-3.5z",
  note: "M9 4.5l11-2v13.2a3.3 3.3 0 11-2-3V7.2l-7 1.3v9.2a3.3 3.3 0 11-2-3z",
  wave: "M3 10h2v4H3zM7 6h2v12H7zM11 3h2v18h-2zM15 8h2v8h-2zM19 10h2v4h-2z",
  codes: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  dials: "M6 3h2v6h2v4H8v8H6v-8H4V9h2zM16 3h2v10h2v4h-2v4h-2v-4h-2v-4h2z",
  repeat:
    "M7 6h9V3l5 4.2-5 4.3V8.5H8a2 2 0 00-2 2V12H3.5v-2A4 4 0 017 6zM17 18H8v3l-5-4.2 5-4.3v3h8a2 2 0 002-2V12h2.5v2a4 4 0 01-3.5 4z",
  volume: "M3 9h4l6-5v16l-6-5H3zM15.5 8.2a5 5 0 010 7.6zM15.5 4.6a8.5 8.5 0 010 14.8v-2a6.8 6.8 0 000-10.8z",
  muted:
    "M3 9h4l6-5v16l-6-5H3zM16 9l1.5-1.5 2.5 2.5 2.5-2.5L24 9l-2.5 2.5L24 14l-1.5 1.5L20 13l-2.5 2.5L16 14l2.5-2.5z",
  close: "M6.4 5L12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4L12 13.4 6.4 19 5 17.6 10.6 12 5 6.4z",
  spectrum:
    "M4 4h3v3H4zM9 4h3v3H9zM4 9h3v3H4zM14 9h3v3h-3zM9 14h3v3H9zM14 14h3v3h-3zM4 19h3v2H4zM9 19h3v2H9zM17 19h3v2h-3zM17 4h3v3h-3z",
  pencil: "M4 16.5V20h3.5L18 9.5 14.5 6zM20 7.5a1 1 0 000-1.4L17.9 4a1 1 0 00-1.4 0L15.4 5.1l3.5 3.5z",
  download: "M11 3h2v9h4l-5 5-5-5h4zM4 18.5h16V21H4z",
  link: "M10.6 13.4a4 4 0 005.7 0l3.2-3.2a4 4 0 00-5.7-5.7l-1.7 1.7 1.4 1.4 1.7-1.7a2 2 0 012.9 2.9l-3.2 3.2a2 2 0 01-2.9 0zM13.4 10.6a4 4 0 00-5.7 0l-3.2 3.2a4 4 0 005.7 5.7l1.7-1.7-1.4-1.4-1.7 1.7a2 2 0 01-2.9-2.9l3.2-3.2a2 2 0 012.9 0z",
  trash: "M9 3h6l1 2h4v2.2H4V5h4zM6 8.8h12L17 21H7z",
  shuffle:
    "M3 6h4.6l3 4-1.3 1.8L6.5 8.2H3zM3 18h4.6l8.2-9.8H18V11l4-4-4-4v3h-3.4L6.5 15.8H3zM13.4 14.2l-1.3 1.7 2.5 2.1H18v3l4-4-4-4v2.8h-3.2z",
  save: "M6 2.5h8l5 5v14H6zM11 10v5H8.5l4 4 4-4H14v-5z",
  system: "M12 3a9 9 0 100 18 9 9 0 000-18zm0 2v14a7 7 0 010-14z",
  light:
    "M12 7.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM11 2h2v3h-2zM11 19h2v3h-2zM2 11h3v2H2zM19 11h3v2h-3zM4.2 5.6l1.4-1.4 2.2 2.2-1.4 1.4zM16.2 17.6l1.4-1.4 2.2 2.2-1.4 1.4zM4.2 18.4l2.2-2.2 1.4 1.4-2.2 2.2zM16.2 6.4l2.2-2.2 1.4 1.4-2.2 2.2z",
  dark: "M13.5 3a9 9 0 107.3 12.7A7.5 7.5 0 0113.5 3z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
