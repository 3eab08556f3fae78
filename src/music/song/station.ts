/** Plays endless songs: the next one is made while one plays. `carillon radio` and the studio share it. */

/** What songs have in common with the one that they should be like, as parameters of POST /release_task. */
export type Likeness = Readonly<Record<string, unknown>>;

export interface StationParts<Song> {
  /** Makes a song. The signal cancels it. */
  make(likeness: Likeness, signal: AbortSignal): Promise<Song>;
  /** Resolves when the song has ended or was skipped. */
  play(song: Song): Promise<void>;
}

interface SongInTheMaking<Song> {
  song: Promise<Song>;
  abort: AbortController;
}

export class Station<Song> {
  readonly #quit = new AbortController();
  #upcoming: SongInTheMaking<Song>;

  constructor(
    private readonly parts: StationParts<Song>,
    private likeness: Likeness = {},
  ) {
    this.#upcoming = this.#prepare();
  }

  /** Plays songs until `quit` is called. @throws the errors of `make` and `play` */
  async run(): Promise<void> {
    try {
      while (!this.#quit.signal.aborted) {
        const song = await this.#next();
        this.#upcoming = this.#prepare();
        await this.parts.play(song);
      }
    } catch (error) {
      if (!this.#quit.signal.aborted) throw error;
    } finally {
      this.#upcoming.abort.abort();
      await this.#upcoming.song.catch(() => {});
    }
  }

  /** Cancels the song in the making. `play` must end the one that plays. */
  quit(): void {
    this.#quit.abort();
    this.#upcoming.abort.abort();
  }

  /** Gives the next songs these parameters. The song that was made ahead is dropped. */
  makeMoreLike(likeness: Likeness): void {
    this.likeness = likeness;
    this.#upcoming.abort.abort();
    this.#upcoming = this.#prepare();
  }

  async #next(): Promise<Song> {
    for (;;) {
      this.#quit.signal.throwIfAborted();
      const { song, abort } = this.#upcoming;
      const made = await song.catch((error: unknown) => {
        // A song that `makeMoreLike` has dropped is no failure.
        if (!abort.signal.aborted) throw error;
      });
      if (made !== undefined && !abort.signal.aborted) return made;
    }
  }

  #prepare(): SongInTheMaking<Song> {
    const abort = new AbortController();
    const song = this.parts.make(this.likeness, abort.signal);
    song.catch(() => {}); // `run` reports the error when it is this song's turn
    return { song, abort };
  }
}

/** Parameters of songs in the tempo, key and metre of a song. */
export function likenessOf({ bpm, keyscale, timesignature }: Readonly<Record<string, unknown>>): Likeness {
  return { bpm, key_scale: keyscale, time_signature: timesignature };
}
