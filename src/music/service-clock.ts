import { readFile, rename, writeFile } from "node:fs/promises";
import type { Logger } from "pino";
import { z } from "zod";

const SAVED = z.object({ serviceMs: z.number().positive(), wallMs: z.number().positive() });

/**
 * The time that songs age by. It runs with the system's steady clock, so that one who sets the clock of the wall ages
 * nothing. Time that the service did not run counts by the wall, but no start adds more than `maxGapMs` and none takes
 * any away. It begins as the wall's time and is kept in a file from one start to the next.
 */
export class ServiceClock {
  #baseMs = 0;
  #steadyBaseMs = 0;

  constructor(
    private readonly file: string,
    private readonly maxGapMs: number,
    private readonly log: Logger,
    private readonly wallMs: () => number = Date.now,
  ) {}

  /** Call before anything else. `newestMs`: a time that has certainly been, for the first start; null: none is known. */
  async start(newestMs: number | null): Promise<void> {
    const wallMs = this.wallMs();
    const saved = await this.#read();
    const firstMs = Math.min(newestMs ?? wallMs, wallMs);
    const last = saved ?? { serviceMs: firstMs, wallMs: firstMs };
    this.#baseMs = last.serviceMs + Math.min(Math.max(wallMs - last.wallMs, 0), this.maxGapMs);
    this.#steadyBaseMs = performance.now();
    await this.save();
  }

  nowMs(): number {
    return Math.round(this.#baseMs + performance.now() - this.#steadyBaseMs);
  }

  /** Keeps the time for the next start. Where that fails, ages stand still until then: nothing goes too early. */
  async save(): Promise<void> {
    const partial = `${this.file}.part`;
    try {
      await writeFile(partial, JSON.stringify({ serviceMs: this.nowMs(), wallMs: this.wallMs() }));
      await rename(partial, this.file);
    } catch (err) {
      this.log.warn({ err }, "the age of songs could not be written down");
    }
  }

  async #read(): Promise<z.infer<typeof SAVED> | null> {
    try {
      return SAVED.parse(JSON.parse(await readFile(this.file, "utf8")));
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== "ENOENT") {
        this.log.warn({ err }, "what was written down of the age of songs cannot be read");
      }
      return null;
    }
  }
}
