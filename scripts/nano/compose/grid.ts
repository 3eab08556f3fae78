/** Patterns of one bar, written a character a sixteenth note; "-" holds the note before, "." rests. */

export interface GridNote {
  /** Step within the bar. */
  step: number;
  /** Steps until its sound ends. */
  steps: number;
  symbol: string;
}

export function readGrid(grid: string): GridNote[] {
  const notes: GridNote[] = [];
  [...grid].forEach((symbol, step) => {
    const last = notes.at(-1);
    if (symbol === "-" && last !== undefined) last.steps = step + 1 - last.step;
    else if (symbol !== "." && symbol !== "-") notes.push({ step, steps: 1, symbol });
  });
  return notes;
}
