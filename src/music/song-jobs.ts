/** The work on tasks, by whatever process does it: the models it needs, the songs, and what is left once a task ended. */
import { join } from "node:path";
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../log.js";
import { AudioFiles } from "./audio/audio-files.js";
import { AudioInputs, removeOwnFiles } from "./audio/audio-inputs.js";
import { findFfmpeg } from "./audio/ffmpeg.js";
import { makeSongs } from "./job.js";
import type { JobControl, Jobs } from "./queue/job-queue.js";
import type { SongResult, Task } from "./queue/store.js";
import { plansUnasked } from "./song/job-context.js";

export class SongJobs implements Jobs {
  readonly audioFiles: AudioFiles;
  readonly inputs: AudioInputs;
  /** Files that came with tasks that have not ended. */
  readonly uploadsDirectory: string;
  /** Settled once: what is loaded meanwhile does not change what a request means. */
  readonly plansUnasked: boolean;

  /** @param engine null where this process accepts tasks and runs none */
  constructor(
    private readonly config: Config,
    readonly engine: MusicEngine | null,
    private readonly log: Logger,
  ) {
    const { temporaryDirectory, storage, initLanguageModel, languageModelDevice } = config;
    const directory = storage ?? temporaryDirectory;
    this.audioFiles = new AudioFiles(join(directory, "api_audio"));
    this.uploadsDirectory = join(directory, "uploads");
    this.inputs = new AudioInputs({
      roots: config.audioRoots,
      audioDirectory: this.audioFiles.directory,
      uploadsDirectory: this.uploadsDirectory,
      maxSeconds: config.sourceMaxSeconds,
    });
    this.plansUnasked =
      engine !== null && plansUnasked(initLanguageModel, languageModelDevice, engine.runtimeInfo());
  }

  /**
   * Loads the configured models.
   * @throws where the model of slot 1 cannot be loaded; the others only warn
   */
  async prepare(): Promise<void> {
    const { engine, log } = this;
    if (engine === null) return;
    await engine.loadSlot(1, null);
    for (const { slot } of engine.slots().filter((state) => state.slot > 1)) {
      await engine.loadSlot(slot, null).catch((err: unknown) => {
        log.warn({ err, slot }, "the model of a slot could not be loaded");
      });
    }
    if (this.plansUnasked) {
      await engine.loadLanguageModel(null).catch((err: unknown) => {
        log.warn({ err }, "the language model could not be loaded; it is tried again when needed");
      });
    }
    // Nobody waits for it: it takes several short processes.
    void findFfmpeg().then(
      ({ program, confinement: { description } }) =>
        log.info({ program, confinement: description }, "ffmpeg runs confined"),
      (err: unknown) => log.error({ err }, "no song can be encoded"),
    );
  }

  async run(task: Task, { signal, report }: JobControl): Promise<SongResult> {
    if (this.engine === null) throw new Error("this process runs no tasks");
    const destination = (index: number) => {
      const name = this.audioFiles.nameOf(task.id, index, task.request.audioFormat);
      return { name, path: this.audioFiles.pathOf(name) };
    };
    const request = await this.inputs.locate(task.request);
    const maxSourceSeconds = this.config.sourceMaxSeconds;
    const { plansUnasked } = this;
    return makeSongs(this.engine, request, { destination, maxSourceSeconds, plansUnasked, signal, report });
  }

  /** Nothing stays of a failed task but its record, however late it failed. */
  async ended(task: Task): Promise<void> {
    await removeOwnFiles(task.request);
    if (task.state === "failed") await this.audioFiles.remove(this.audioFiles.namesOf(task));
  }
}
