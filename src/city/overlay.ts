/**
 * What the bridge shows beside the city: one line per request that reaches it. The overlay holds the latest few for
 * some seconds, newest first; the console keeps many, with the local time.
 */

const OVERLAY_LINES = 5;
const OVERLAY_LIFETIME_MS = 6000;
const CONSOLE_LINES = 120;
const CONSOLE_WIDTH = 78;
const MAX_LINE_CHARACTERS = 240;

export interface OverlayLine {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly shownAtMs: number;
}

export class Overlay {
  private lines: OverlayLine[] = [];
  private readonly listeners = new Set<(line: OverlayLine) => void>();

  /** @param now milliseconds since 1970 */
  constructor(private readonly now: () => number = Date.now) {}

  notify(text: string): void {
    const line = { text: copyOfStart(text), shownAtMs: this.now() };
    this.lines = [line, ...this.lines.slice(0, CONSOLE_LINES - 1)];
    for (const listener of this.listeners) listener(line);
  }

  clear(): void {
    this.lines = [];
  }

  /** The lines that still show, newest first. */
  visible(): readonly OverlayLine[] {
    const oldestMs = this.now() - OVERLAY_LIFETIME_MS;
    return this.lines.slice(0, OVERLAY_LINES).filter(({ shownAtMs }) => shownAtMs > oldestMs);
  }

  /** The latest lines as `[HH:mm:ss] text`, newest first. */
  console(): string[] {
    return this.lines.map(({ text, shownAtMs }) => cut(`[${localTime(shownAtMs)}] ${text}`, CONSOLE_WIDTH));
  }

  /** Calls back with every new line. Returns the unsubscriber. */
  onLine(listener: (line: OverlayLine) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

function localTime(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** A piece of a string keeps the whole of it in memory, and a line may come from a request of megabytes: hence a copy. */
function copyOfStart(text: string): string {
  return Buffer.from(cut(text, MAX_LINE_CHARACTERS)).toString();
}

function cut(text: string, maxCharacters: number): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters - 3)}...` : text;
}
