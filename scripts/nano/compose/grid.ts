/** Patterns of one bar, with one character per sixteenth note. "-" holds the previous note, "." is a rest. */

export interface GridNote {
  /** Step within the bar. */
  step: number;
  /** Length of the note in steps. */
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
