/** The embedded game: one loaded city, its clock and its saves. */
import type { SaveDirectory } from "../game.js";
import { layStarterMap } from "./fabric/starter-map.js";
import { type LoadedSave, newCityId, SaveFiles } from "./saves/save-files.js";
import { SimulatedCity } from "./simulated-city.js";
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
  /** Simulation frames per real second at speed 1. */
  readonly framesPerSecond?: number;
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
  #loaded: SimulatedCity | null = null;
  #clock: CityClock | null = null;
  readonly #saves: SaveFiles;
  readonly #listeners = new Set<(city: SimulatedCity | null) => void>();
  readonly #framesPerSecond: number;
  readonly #unlimitedMoney: boolean;
  readonly #autosaveTimer: NodeJS.Timeout | null;
  #lastCommand: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: EmbeddedGameOptions) {
    this.#saves = new SaveFiles(options.savesDirectory, options.onSaveFailed, options.onDirectoryMade);
    this.#framesPerSecond = options.framesPerSecond ?? FRAMES_PER_SECOND;
    this.#unlimitedMoney = options.unlimitedMoney ?? false;
    const seconds = options.autosaveSeconds ?? 0;
    this.#autosaveTimer = seconds > 0 ? setInterval(() => void this.autosave(), seconds * 1000) : null;
    this.#autosaveTimer?.unref();
  }

  /** The loaded city, or null. Read it in each request, because loading replaces it. */
  get city(): SimulatedCity | null {
    return this.#loaded;
  }

  /** Runs a command once all earlier ones have ended. */
  inOrder<T>(command: () => T | Promise<T>): Promise<T> {
    const running = this.#lastCommand.then(command);
    this.#lastCommand = running.catch(() => {});
    return running;
  }

  /** Replaces the loaded city with a new one. */
  startCity({ seed, map, paused }: NewCityOptions): SimulatedCity {
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
  async loadCity(path: string): Promise<SimulatedCity> {
    return this.beginSaved(await this.readSave(path));
  }

  /**
   * Reads a save without changing the loaded city.
   * @throws SaveFileError
   */
  readSave(path: string): Promise<LoadedSave> {
    return this.#saves.read(path);
  }

  /** Replaces the loaded city with one that was read. */
  async beginSaved(save: LoadedSave): Promise<SimulatedCity> {
    return this.#adopt(await this.#saves.begun(save));
  }

  /**
   * Loads the newest valid save. Returns null and changes nothing when there is none.
   * @param onRefused called for every newer save that cannot be loaded; the file of such a save is kept
   */
  async resumeCity(onRefused: (error: Error) => void): Promise<SimulatedCity | null> {
    const world = await this.#saves.loadNewest(onRefused);
    return world && this.#adopt(world);
  }

  /**
   * Saves the loaded city under an automatic name. Resolves to false if the save failed, after `onSaveFailed`
   * was called. Resolves to true if the city is saved or no city is loaded.
   */
  async autosave(): Promise<boolean> {
    return this.#loaded === null || this.#saves.autosave(this.#loaded.world);
  }

  unloadCity(): void {
    this.#clock?.stop();
    this.#clock = null;
    this.#loaded = null;
    this.#notify();
  }

  /** Unloads the city and waits for a running save. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#autosaveTimer) clearInterval(this.#autosaveTimer);
    this.unloadCity();
    await this.#saves.settled();
  }

  /**
   * Lists the saved cities, newest first, without a save that is still being written. Empty without a
   * directory.
   */
  listSaves(): Promise<SaveDirectory> {
    return this.#saves.list();
  }

  /** Resolves when no save is running. */
  savesSettled(): Promise<void> {
    return this.#saves.settled();
  }

  /**
   * Calls `listener` with the new city after a load, or with null after an unload. Returns a function that
   * unsubscribes.
   */
  onCityChanged(listener: (city: SimulatedCity | null) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #adopt(world: World): SimulatedCity {
    if (this.#isClosed) throw new Error("the city is closing");
    this.#clock?.stop();
    world.unlimitedMoney = this.#unlimitedMoney;
    const city = new SimulatedCity(world, (name) => this.#saves.begin(world, name));
    this.#loaded = city;
    this.#clock = new CityClock(world, this.#framesPerSecond);
    this.#clock.start();
    this.#notify();
    return city;
  }

  #notify(): void {
    for (const listener of this.#listeners) listener(this.#loaded);
  }
}

/** Frames per real second at speed 1. */
export const FRAMES_PER_SECOND = 60;
/** Multiple of FRAMES_PER_SECOND for each selected speed, from 0. */
const SPEED_FACTORS = [0, 1, 2, 4];

const SLICE_INTERVAL_MS = 8;
/** The simulation runs in slices of at most this time. Requests are served between two slices. */
const SLICE_BUDGET_MS = 6;
/** Maximum simulation backlog. Frames missed before that, for example during a save, are dropped. */
const LONGEST_BACKLOG_MS = 250;

class CityClock {
  readonly #world: World;
  readonly #framesPerSecond: number;
  #timer: NodeJS.Timeout | null = null;
  #lastMs = 0;
  #framesDue = 0;

  /** @param framesPerSecond simulation frames per real second at speed 1 */
  constructor(world: World, framesPerSecond: number) {
    this.#world = world;
    this.#framesPerSecond = framesPerSecond;
  }

  start(): void {
    this.#lastMs = performance.now();
    this.#timer = setInterval(() => this.#runSlice(), SLICE_INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  #runSlice(): void {
    const world = this.#world;
    if (world.capture || world.isAdvancing || world.isLeaving) return;
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    const factor = world.paused ? 0 : (SPEED_FACTORS[world.selectedSpeed] as number);
    const framesPerMs = (this.#framesPerSecond * factor) / 1000;
    this.#framesDue = Math.min(this.#framesDue + elapsedMs * framesPerMs, LONGEST_BACKLOG_MS * framesPerMs);
    while (this.#framesDue >= 1 && performance.now() - nowMs < SLICE_BUDGET_MS) {
      tick(world);
      this.#framesDue--;
    }
  }
}
