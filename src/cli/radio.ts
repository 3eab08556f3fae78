/** `carillon radio`: plays endless songs from one description. The next song is made while one plays. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { Command } from "commander";
import { loadConfig } from "../config.js";
import type { SongResult } from "../music/queue/store.js";
import { songFileName } from "../music/song/title.js";
import { isDirectory } from "../system/directory-lock.js";
import { environmentWith } from "./command.js";

/** Programs that play a file, with the arguments before its path. */
const PLAYERS: readonly string[][] = [
  ["mpv", "--no-video", "--really-quiet", "--no-terminal"],
  ["ffplay", "-nodisp", "-autoexit", "-loglevel", "error"],
  ["pw-play"],
  ["paplay"],
  ["aplay", "--quiet"],
];
const LOUDNESS_LUFS = -16;
const KEYS = "n next, k keep, m more like this, q quit";
const CONTROL_C = "\u0003";

interface RadioOptions {
  duration: string;
  model?: string;
  player?: string;
  keepIn: string;
}

/** Parameters of POST /release_task. */
type Parameters = Readonly<Record<string, unknown>>;

interface Song {
  path: string;
  result: SongResult;
}

type MakeSong = (parameters: Parameters, name: string, signal: AbortSignal) => Promise<Song>;

interface SongInTheMaking {
  song: Promise<Song>;
  abort: AbortController;
}

export const radioCommand = new Command("radio")
  .description(`play endless songs from one description; keys: ${KEYS}`)
  .argument("<prompt>", "description of the music")
  .option("--duration <seconds>", "length of a song, 10 to 600", "60")
  .option("--model <name>", "a model listed by `carillon models`")
  .option(
    "--player <command>",
    "program that plays a wav file; default: the first found of mpv, ffplay, pw-play, paplay, aplay",
  )
  .option("--keep-in <folder>", "folder for kept songs", ".")
  .action(radio);

async function radio(prompt: string, options: RadioOptions): Promise<void> {
  const player = options.player?.split(" ") ?? installedPlayer();
  if (!(await isDirectory(options.keepIn))) throw new Error(`--keep-in: ${options.keepIn} is not a folder`);
  const { createEngine, makeSongs, parseGenerationRequest } = await import("../index.js");
  const config = loadConfig(environmentWith({ SVC_CONFIG_PATH: options.model }));
  const engine = createEngine(config, (message) => console.error(message));
  const folder = mkdtempSync(join(tmpdir(), "carillon-radio-"));
  const make: MakeSong = async (parameters, name, signal) => {
    const path = join(folder, name);
    const all = { prompt, audio_duration: options.duration, ...parameters };
    const file = { batch_size: 1, audio_format: "wav", loudness: LOUDNESS_LUFS };
    const request = parseGenerationRequest({ ...all, ...file }, engine);
    const { sourceMaxSeconds: maxSourceSeconds } = config;
    const song = { destination: () => ({ name, path }), maxSourceSeconds, signal };
    return { path, result: await makeSongs(engine, request, song) };
  };
  const station = new Radio(make, player, resolve(options.keepIn));
  const press = (keys: Buffer) => {
    for (const key of keys.toString()) station.press(key);
  };
  const { stdin } = process;
  process.once("SIGINT", () => station.press("q"));
  try {
    if (stdin.isTTY) stdin.setRawMode(true);
    stdin.on("data", press);
    console.error(`Making the first song. Keys: ${KEYS}`);
    await station.play();
  } finally {
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.off("data", press).pause();
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Radio {
  readonly #make: MakeSong;
  readonly #player: readonly string[];
  readonly #keptFolder: string;
  readonly #quit = new AbortController();
  #made = 0;
  #upcoming: SongInTheMaking;
  #playing: { song: Song; skip(): void } | null = null;
  /** What songs have in common with the one that should be followed by more like it. */
  #likeness: Parameters = {};

  constructor(make: MakeSong, player: readonly string[], keptFolder: string) {
    this.#make = make;
    this.#player = player;
    this.#keptFolder = keptFolder;
    this.#upcoming = this.#prepare();
  }

  /** Plays songs until `q` is pressed. @throws Error if the player fails, or the error of a song */
  async play(): Promise<void> {
    try {
      while (!this.#quit.signal.aborted) {
        const song = await this.#upcoming.song;
        this.#upcoming = this.#prepare();
        await this.#playSong(song);
        rmSync(song.path, { force: true });
      }
    } catch (error) {
      if (!this.#quit.signal.aborted) throw error;
    } finally {
      await this.#cancelUpcoming();
    }
  }

  press(key: string): void {
    const isQuit = key === "q" || key === CONTROL_C;
    if (isQuit) {
      this.#quit.abort();
      this.#upcoming.abort.abort();
    }
    if (this.#playing === null) return;
    const { song, skip } = this.#playing;
    if (isQuit || key === "n") skip();
    else if (key === "k") this.#keep(song);
    else if (key === "m") this.#makeMoreLike(song.result);
  }

  #prepare(): SongInTheMaking {
    const abort = new AbortController();
    const song = this.#make(this.#likeness, `${++this.#made}.wav`, abort.signal);
    song.catch(() => {}); // `play` reports the error when it is this song's turn
    return { song, abort };
  }

  async #cancelUpcoming(): Promise<void> {
    this.#upcoming.abort.abort();
    await this.#upcoming.song.catch(() => {});
  }

  async #playSong(song: Song): Promise<void> {
    const [program, ...args] = this.#player as [string, ...string[]];
    const child = spawn(program, [...args, song.path], { stdio: ["ignore", "ignore", "pipe"] });
    let isSkipped = false;
    const skip = () => {
      isSkipped = true;
      child.kill();
    };
    this.#playing = { song, skip };
    console.error(`playing ${describe(song.result)}`);
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close")]).catch((cause) => {
      throw new Error(`cannot start ${program}: install it, or name a program with --player`, { cause });
    });
    this.#playing = null;
    if (code !== 0 && !isSkipped)
      throw new Error(`${program} failed: ${said.trim() || `exit status ${code}`}`);
  }

  #keep({ path, result: { prompt, seeds } }: Song): void {
    const kept = join(this.#keptFolder, songFileName(prompt, String(seeds[0]), "wav"));
    try {
      copyFileSync(path, kept);
      console.error(`kept ${kept}`);
    } catch (error) {
      console.error(`not kept: ${(error as Error).message}`);
    }
  }

  #makeMoreLike({ metas: { bpm, keyscale, timesignature } }: SongResult): void {
    this.#likeness = { bpm, key_scale: keyscale, time_signature: timesignature };
    this.#upcoming.abort.abort();
    this.#upcoming = this.#prepare();
    console.error(`the next songs have ${[bpm && `${bpm} bpm`, keyscale].filter(Boolean).join(", ")}`);
  }
}

function describe({ prompt, metas: { bpm, keyscale }, seeds }: SongResult): string {
  return [prompt, bpm && `${bpm} bpm`, keyscale, `seed ${seeds[0]}`].filter(Boolean).join(", ");
}

/** @throws Error if no player is on the PATH */
function installedPlayer(): readonly string[] {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const player = PLAYERS.find(([program = ""]) =>
    folders.some((folder) => isExecutable(join(folder, program))),
  );
  if (player !== undefined) return player;
  const names = PLAYERS.map(([program]) => program).join(", ");
  throw new Error(`no player found: install one of ${names}, or name a program with --player`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
