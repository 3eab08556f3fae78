/** Makes the songs of the radio: one ahead of the one that plays. The service deletes those that nobody keeps. */
import { CarillonError, TaskFailedError } from "../../client/index.js";
import { type Likeness, likenessOf, Station } from "../../music/song/station.js";
import { carillon, idempotencyKey, type Task } from "./api.js";
import { errorInWords, failureOf } from "./notes.js";
import { playback } from "./playback.js";
import { type RadioMemory, rememberRadio } from "./radio.js";
import { BackOff } from "./reading.js";
import type { Track } from "./song.js";
import { preload } from "./sound.js";

const SECONDS = 60;

export interface RadioState {
  playing: Task | null;
  isKept: boolean;
  /** Progress of the next song, 0 to 1; null once it is ready. */
  progress: number | null;
  /** Whether the song before has ended or was skipped. */
  isAwaited: boolean;
  /** Why the next song is late; "" if it is not. */
  problem: string;
}

export const FIRST: RadioState = { playing: null, isKept: false, progress: 0, isAwaited: true, problem: "" };

export class RadioStation {
  readonly #station: Station<Task>;
  readonly #retries = new BackOff();
  /** Ids of songs that were made before a reload of the page. */
  readonly #earlier: string[];
  #state = FIRST;
  #next: string | undefined;
  #end = () => {};

  constructor(
    private memory: RadioMemory,
    private readonly onTrack: (track: Track) => void,
    private readonly onState: (state: RadioState) => void,
  ) {
    this.#earlier = [...memory.songs];
    this.#station = new Station(
      {
        make: (likeness, signal) => this.#make(likeness, signal),
        play: (task) => this.#play(task),
      },
      memory.likeness,
    );
    addEventListener("pagehide", this.#remember);
    void this.#station.run();
  }

  /** Plays the next song, as soon as it is made. */
  skip(): void {
    this.#show({ isAwaited: true });
    this.#end();
  }

  /** Puts the song that plays into the library. @throws the errors of `fetch` */
  async keep(): Promise<void> {
    const task = this.#state.playing;
    if (task === null) return;
    await carillon.mark(task.task_id, { temporary: false });
    if (this.#state.playing === task) this.#show({ isKept: true });
  }

  /** The next songs have the tempo, key and metre of this one. */
  makeMoreLike(song: Task): void {
    const likeness = likenessOf(song.songs[0]?.metas ?? {});
    this.memory = { ...this.memory, likeness };
    this.#station.makeMoreLike(likeness);
    this.#remember();
  }

  stop(): void {
    removeEventListener("pagehide", this.#remember);
    this.#station.quit();
    this.#discardPlayed();
    this.#end();
  }

  #show(change: Partial<RadioState>): void {
    this.#state = { ...this.#state, ...change };
    this.onState(this.#state);
  }

  readonly #remember = () => {
    const songs = [this.#state.playing?.task_id, this.#next].filter((id) => id !== undefined);
    const { seconds, length } = playback();
    rememberRadio({ ...this.memory, songs, played: length > 0 ? seconds / length : 0 });
  };

  /** Retries until the song is made. @throws the signal's reason */
  async #make(likeness: Likeness, signal: AbortSignal): Promise<Task> {
    let id = this.#earlier.shift();
    let key = idempotencyKey();
    let isMade = false;
    this.#next = id;
    this.#show({ progress: 0, problem: "" });
    signal.addEventListener("abort", () => id !== undefined && discard(id, isMade));
    for (;;) {
      try {
        if (id === undefined) {
          const parameters = { audio_duration: SECONDS, ...this.memory.parameters, ...likeness };
          const own = { batch_size: 1, seed: -1, use_random_seed: true, temporary: true };
          ({ task_id: id } = await carillon.submit(
            { ...parameters, ...own },
            { idempotencyKey: key, signal },
          ));
          this.#next = id;
          this.#remember();
        }
        const task = await carillon.wait(id, {
          signal,
          onProgress: ({ progress }) => this.#show({ progress, problem: "" }),
        });
        isMade = true;
        preload(task.songs[0]?.file ?? "");
        this.#show({ progress: null, problem: "" });
        return task;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof TaskFailedError || (error instanceof CarillonError && error.status === 404)) {
          id = undefined;
          key = idempotencyKey();
        }
        this.#show({ problem: problemOf(error) });
        await this.#retries.wait();
        signal.throwIfAborted();
      }
    }
  }

  async #play(task: Task): Promise<void> {
    this.#discardPlayed();
    if (this.#next === task.task_id) this.#next = undefined;
    const start = this.#state.playing === null ? this.memory.played : 0;
    this.#retries.reset();
    this.#show({ playing: task, isKept: !task.temporary, isAwaited: false });
    this.onTrack({ task, index: 0, start });
    this.#remember();
    await new Promise<void>((resolve) => {
      this.#end = resolve;
    });
  }

  #discardPlayed(): void {
    const { playing, isKept } = this.#state;
    if (playing !== null && !isKept) discard(playing.task_id, true);
  }
}

/** Cancels or deletes a song. If that fails, the song expires. */
function discard(id: string, isMade: boolean): void {
  const remove = () => carillon.delete(id, "succeeded");
  // A song may have been finished just before it is cancelled.
  const removed: Promise<unknown> = isMade ? remove() : carillon.cancel(id).catch(remove);
  removed.catch(() => {});
}

function problemOf(error: unknown): string {
  return error instanceof TaskFailedError ? failureOf(error.task) : errorInWords(error);
}
