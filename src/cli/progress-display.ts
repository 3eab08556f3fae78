/** Progress of a command on stderr. */
import cliProgress from "cli-progress";

/** Shows a bar on a terminal; otherwise prints a line per stage. */
export class ProgressDisplay {
  readonly #bar = process.stderr.isTTY
    ? new cliProgress.SingleBar({ format: "{bar} {percentage}% {stage}", clearOnComplete: true })
    : null;
  #stage = "";

  /** @param value 0 to 1 */
  show({ value, stage }: { value: number; stage: string }): void {
    if (this.#bar === null) {
      if (stage !== this.#stage) console.error(stage);
    } else if (this.#stage === "") {
      this.#bar.start(1, value, { stage });
    } else {
      this.#bar.update(value, { stage });
    }
    this.#stage = stage;
  }

  stop(): void {
    this.#bar?.stop();
  }
}
