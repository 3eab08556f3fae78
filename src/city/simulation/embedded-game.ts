/** The game that runs inside this process: one city at a time, the clock that drives it, and its saves. */
import type { City, Game, SaveDirectory } from "../game.js";
import { layStarterMap } from "./fabric/starter-map.js";
import { newCityId, SaveFiles } from "./saves/save-files.js";
import { SimulatedCity } from "./simulated-city.js";
import { World } from "./state/world.js";
import { tick } from "./tick.js";

export interface EmbeddedGameOptions {
  readonly savesDirectory: string;
  /** Told about a save that failed in the background. */
  readonly onSaveFailed: (error: Error) => void;
  /** Between automatic saves; 0 for none but those that `autosave` asks for. */
  readonly autosaveSeconds?: number;
  /** Simulation frames per real second at speed 1. */
  readonly framesPerSecond?: number;
  /** Refuse nothing for want of money. */
  readonly unlimitedMoney?: boolean;
}

export interface NewCityOptions {
  /** The same seed and the same commands make the same city. */
  readonly seed: number;
  /** `highway` is the usual start; `empty` is bare land without a connection to the outside. */
  readonly map: "highway" | "empty";
  readonly paused: boolean;
}

export class EmbeddedGame implements Game {
  #loaded: SimulatedCity | null = null;
  #clock: CityClock | null = null;
  readonly #saves: SaveFiles;
  readonly #listeners = new Set<(city: City | null) => void>();
  readonly #framesPerSecond: number;
  readonly #unlimitedMoney: boolean;
  readonly #autosaveTimer: NodeJS.Timeout | null;

  constructor(options: EmbeddedGameOptions) {
    this.#saves = new SaveFiles(options.savesDirectory, options.onSaveFailed);
    this.#framesPerSecond = options.framesPerSecond ?? FRAMES_PER_SECOND;
    this.#unlimitedMoney = options.unlimitedMoney ?? false;
    const seconds = options.autosaveSeconds ?? 0;
    this.#autosaveTimer = seconds > 0 ? setInterval(() => void this.autosave(), seconds * 1000) : null;
    this.#autosaveTimer?.unref();
  }

  get city(): SimulatedCity | null {
    return this.#loaded;
  }

  /** Starts a new city in place of the present one. */
  startCity({ seed, map, paused }: NewCityOptions): SimulatedCity {
    const world = new World(seed);
    world.cityId = newCityId();
    if (map === "highway") layStarterMap(world);
    world.paused = paused;
    return this.#adopt(world);
  }

  /**
   * Loads a saved city in place of the present one, which stays if the file is refused.
   * @throws SaveFileError
   */
  async loadCity(path: string): Promise<SimulatedCity> {
    return this.#adopt(await this.#saves.load(path));
  }

  /**
   * Goes on with the newest save that is whole. Null, and no change, where there is none.
   * @param onRefused told of every newer one that could not be loaded; it stays as it is
   */
  async resumeCity(onRefused: (error: Error) => void): Promise<SimulatedCity | null> {
    const world = await this.#saves.loadNewest(onRefused);
    return world && this.#adopt(world);
  }

  /** Saves the city, if there is one, under an automatic name. Resolves once that is done, or has failed and was told. */
  async autosave(): Promise<void> {
    if (this.#loaded) await this.#saves.autosave(this.#loaded.world);
  }

  unloadCity(): void {
    this.#clock?.stop();
    this.#clock = null;
    this.#loaded = null;
    this.#notify();
  }

  /** Stops everything and waits for a save under way. */
  async close(): Promise<void> {
    if (this.#autosaveTimer) clearInterval(this.#autosaveTimer);
    this.unloadCity();
    await this.#saves.settled();
  }

  listSaves(): Promise<SaveDirectory> {
    return this.#saves.list();
  }

  /** Resolves when no save is being written any more. */
  savesSettled(): Promise<void> {
    return this.#saves.settled();
  }

  onCityChanged(listener: (city: City | null) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #adopt(world: World): SimulatedCity {
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

/** Frames per real second at speed 1, and the factor of each speed. */
export const FRAMES_PER_SECOND = 60;
const SPEED_FACTORS = [0, 1, 2, 4];

const SLICE_INTERVAL_MS = 8;
/** A slice stops after this long and leaves the rest to the next one: requests wait for no more than one. */
const SLICE_BUDGET_MS = 6;
/** Frames that could not be simulated in this time, while a save copies or others work, are dropped: the city falls behind. */
const LONGEST_BACKLOG_MS = 250;

class CityClock {
  readonly #world: World;
  readonly #framesPerSecond: number;
  #timer: NodeJS.Timeout | null = null;
  #lastMs = 0;
  #framesDue = 0;

  /** @param framesPerSecond at speed 1 */
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
    if (world.capture) return;
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
