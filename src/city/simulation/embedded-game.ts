/** The embedded game: one loaded city, its clock and its saves. */
import { layStarterMap } from "./fabric/starter-map.js";
import { type LoadedSave, newCityId, SaveFiles } from "./saves/save-files.js";
import { World } from "./state/world.js";
import { tick } from "./tick.js";

export interface EmbeddedGameOptions {
  readonly savesDirectory: string;
  /** Called when a background save fails. */
  readonly onSaveFailed: (error: Error) => void;
  /** Called when a save has made the missing directory. The save fails if it rejects. */
  readonly onDirectoryMade?: () => Promise<void>;
  /** Interval of automatic saves; 0 turns them off. */
  readonly autosaveSeconds?: number;
  /** Whether commands are accepted even without money. */
  readonly unlimitedMoney?: boolean;
}

export const MAPS = ["highway", "empty"] as const;

export interface NewCityOptions {
  /** Seed of the terrain and of random events: the same seed and commands make the same city. */
  readonly seed: number;
  /** `highway` is the usual start; `empty` is bare land without a connection to the outside. */
  readonly map: (typeof MAPS)[number];
  readonly paused: boolean;
}

export class EmbeddedGame {
  readonly saves: SaveFiles;
  #world: World | null = null;
  #clock: CityClock | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #unlimitedMoney: boolean;
  readonly #autosaveTimer: NodeJS.Timeout | null;
  /** Replies of commands that run or that have replaced the city, by path and `opId`. */
  readonly replies = new Map<string, Promise<object>>();
  #lastCommand: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: EmbeddedGameOptions) {
    this.saves = new SaveFiles(options.savesDirectory, options.onSaveFailed, options.onDirectoryMade);
    this.#unlimitedMoney = options.unlimitedMoney ?? false;
    const seconds = options.autosaveSeconds ?? 0;
    this.#autosaveTimer = seconds > 0 ? setInterval(() => void this.autosave(), seconds * 1000) : null;
    this.#autosaveTimer?.unref();
  }

  /** The loaded city, or null. Read it in each request, because loading replaces it. */
  get world(): World | null {
    return this.#world;
  }

  /** Runs a command once all earlier ones have ended. */
  inOrder<T>(command: () => T | Promise<T>): Promise<T> {
    const running = this.#lastCommand.then(command);
    this.#lastCommand = running.catch(() => {});
    return running;
  }

  /** Replaces the loaded city with a new one. */
  startCity({ seed, map, paused }: NewCityOptions): World {
    const world = new World(seed);
    world.cityId = newCityId();
    if (map === "highway") layStarterMap(world);
    world.paused = paused;
    return this.#adopt(world);
  }

  /**
   * Replaces the loaded city with a saved one. If the file is invalid the loaded city stays.
   * @throws SaveFileError
   */
  async loadCity(path: string): Promise<World> {
    return this.beginSaved(await this.saves.read(path));
  }

  /** Replaces the loaded city with one that was read. */
  async beginSaved(save: LoadedSave): Promise<World> {
    return this.#adopt(await this.saves.begun(save));
  }

  /**
   * Loads the newest valid save and returns its path. Returns null and changes nothing when there is none.
   * @param onRefused called for every newer save that cannot be loaded; the file of such a save is kept
   */
  async resumeCity(onRefused: (error: Error) => void): Promise<string | null> {
    const newest = await this.saves.loadNewest(onRefused);
    if (!newest) return null;
    this.#adopt(newest.world);
    return newest.path;
  }

  /**
   * Saves the loaded city under an automatic name. Resolves to false if the save failed, after `onSaveFailed`
   * was called. Resolves to true if the city is saved or no city is loaded.
   */
  async autosave(): Promise<boolean> {
    return this.#world === null || this.saves.autosave(this.#world);
  }

  unloadCity(): void {
    this.#clock?.stop();
    this.#clock = null;
    this.#world = null;
    this.#notify();
  }

  /** Unloads the city and waits for a running save. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#autosaveTimer) clearInterval(this.#autosaveTimer);
    this.unloadCity();
    await this.saves.settled();
  }

  /** Calls `listener` after a city was loaded or unloaded. Returns a function that unsubscribes. */
  onCityChanged(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #adopt(world: World): World {
    if (this.#isClosed) throw new Error("the city is closing");
    this.#clock?.stop();
    world.unlimitedMoney = this.#unlimitedMoney;
    this.#world = world;
    this.#clock = new CityClock(world);
    this.#notify();
    return world;
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Frames per real second at speed 1. */
export const FRAMES_PER_SECOND = 60;
/** Multiple of FRAMES_PER_SECOND for each selected speed, from 0. */
const SPEED_FACTORS = [0, 1, 2, 4];
export const MAX_FRAMES_PER_SECOND = 4 * FRAMES_PER_SECOND;

const SLICE_INTERVAL_MS = 8;
/** The simulation runs in slices of at most this time. Requests are served between two slices. */
const SLICE_BUDGET_MS = 6;
/** Maximum simulation backlog. Frames missed before that, for example during a save, are dropped. */
const LONGEST_BACKLOG_MS = 250;

class CityClock {
  readonly #world: World;
  readonly #timer = setInterval(() => this.#runSlice(), SLICE_INTERVAL_MS).unref();
  #lastMs = performance.now();
  #framesDue = 0;

  constructor(world: World) {
    this.#world = world;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #runSlice(): void {
    const world = this.#world;
    if (world.capture || world.isAdvancing || world.isLeaving) return;
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    const factor = world.paused ? 0 : (SPEED_FACTORS[world.selectedSpeed] as number);
    const framesPerMs = (FRAMES_PER_SECOND * factor) / 1000;
    this.#framesDue = Math.min(this.#framesDue + elapsedMs * framesPerMs, LONGEST_BACKLOG_MS * framesPerMs);
    while (this.#framesDue >= 1 && performance.now() - nowMs < SLICE_BUDGET_MS) {
      tick(world);
      this.#framesDue--;
    }
  }
}
