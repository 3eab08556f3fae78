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
import { type Likeness, likenessOf, Station, type StationParts } from "../music/song/station.js";
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

interface Song {
  path: string;
  result: SongResult;
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
  let made = 0;
  const make = async (likeness: Likeness, signal: AbortSignal): Promise<Song> => {
    const name = `${++made}.wav`;
    const path = join(folder, name);
    const all = { prompt, audio_duration: options.duration, ...likeness };
    const file = { batch_size: 1, audio_format: "wav", loudness: LOUDNESS_LUFS };
    const request = parseGenerationRequest({ ...all, ...file }, engine);
    const { sourceMaxSeconds: maxSourceSeconds } = config;
    const song = { destination: () => ({ name, path }), maxSourceSeconds, signal };
    return { path, result: await makeSongs(engine, request, song) };
  };
  const radio = new Radio(make, player, resolve(options.keepIn));
  const press = (keys: Buffer) => {
    for (const key of keys.toString()) radio.press(key);
  };
  const { stdin } = process;
  process.once("SIGINT", () => radio.press("q"));
  try {
    if (stdin.isTTY) stdin.setRawMode(true);
    stdin.on("data", press);
    console.error(`Making the first song. Keys: ${KEYS}`);
    await radio.play();
  } finally {
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.off("data", press).pause();
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Radio {
  readonly #player: readonly string[];
  readonly #keptFolder: string;
  readonly #station: Station<Song>;
  #playing: { song: Song; skip(): void } | null = null;

  constructor(make: StationParts<Song>["make"], player: readonly string[], keptFolder: string) {
    this.#player = player;
    this.#keptFolder = keptFolder;
    this.#station = new Station({ make, play: (song) => this.#playSong(song) });
  }

  /** Plays songs until `q` is pressed. @throws Error if the player fails, or the error of a song */
  play(): Promise<void> {
    return this.#station.run();
  }

  press(key: string): void {
    const isQuit = key === "q" || key === CONTROL_C;
    if (isQuit) this.#station.quit();
    if (this.#playing === null) return;
    const { song, skip } = this.#playing;
    if (isQuit || key === "n") skip();
    else if (key === "k") this.#keep(song);
    else if (key === "m") this.#makeMoreLike(song.result);
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
    rmSync(song.path, { force: true });
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

  #makeMoreLike({ metas }: SongResult): void {
    this.#station.makeMoreLike(likenessOf(metas));
    const { bpm, keyscale } = metas;
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
