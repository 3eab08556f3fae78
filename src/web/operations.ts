/** The user's latest builds, and the button that undoes them, newest first. */
import { type CommandReply, sendCommand } from "./api.js";
import { button, byId } from "./panel.js";
import { formatWholeNumber } from "./words.js";

/** A running city pays back what is undone within this time. */
const UNDO_MS = 60_000;

interface Operation {
  readonly label: string;
  /** Ids with which the commands were sent, in order. */
  readonly opIds: readonly string[];
  /** What was built, to bulldoze it in front of a running game. */
  readonly built: readonly { readonly entityType: string; readonly id: number }[];
  readonly doneMs: number;
}

export class Operations {
  readonly #say: (text: string) => void;
  readonly #undoButton: HTMLButtonElement;
  #done: Operation[] = [];
  /** Whether the city is embedded. A running game has no undo: the page bulldozes there. */
  isEmbedded = true;

  /** @param say shows a text to the user */
  constructor(say: (text: string) => void) {
    this.#say = say;
    this.#undoButton = button("Undo", () => void this.undo());
    byId("tools").append(this.#undoButton);
    document.addEventListener("keydown", (event) => {
      const isTyped = event.target instanceof HTMLInputElement && event.target.type !== "radio";
      if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || isTyped) return;
      event.preventDefault();
      void this.undo();
    });
    this.#update();
  }

  /** Sends commands one after another, each with an id of its own, so that they can be undone together. */
  async run(label: string, commands: readonly { name: string; body: object }[]): Promise<CommandReply[]> {
    const replies: CommandReply[] = [];
    const opIds: string[] = [];
    try {
      for (const { name, body } of commands) {
        const opId = crypto.randomUUID();
        replies.push(await sendCommand(name, { ...body, opId }));
        if (UNDOABLE.includes(name)) opIds.push(opId);
      }
    } finally {
      const built = replies.flatMap(builtBy);
      if (opIds.length > 0) this.#done.push({ label, opIds, built, doneMs: Date.now() });
      this.#update();
      setTimeout(() => this.#update(), UNDO_MS + 100);
    }
    return replies;
  }

  /** Forgets all builds: another city is loaded. */
  forget(): void {
    this.#done = [];
    this.#update();
  }

  /** What an undo of the newest build would do, for the user. */
  get promise(): string {
    return this.isEmbedded
      ? "Undo within a minute pays it back."
      : "Undo bulldozes it; a running game pays nothing back.";
  }

  async undo(): Promise<void> {
    this.#update();
    const last = this.#done.pop();
    if (!last) return;
    this.#update();
    try {
      this.#say(this.isEmbedded ? await takeBack(last) : await bulldoze(last));
    } catch (error) {
      const reason = error instanceof TypeError ? "The city does not answer." : (error as Error).message;
      this.#say(`${last.label} cannot be undone: ${reason}`);
    }
  }

  #update(): void {
    if (this.isEmbedded) this.#done = this.#done.filter(({ doneMs }) => Date.now() - doneMs < UNDO_MS);
    const last = this.#done.at(-1);
    this.#undoButton.disabled = !last;
    this.#undoButton.title = last ? `Undo: ${last.label}` : "Nothing to undo";
  }
}

const UNDOABLE = ["build-road", "build-network", "zone-rectangle", "set-zone", "place-building", "connect"];

function builtBy({ segmentId, segmentIds, buildingId }: CommandReply) {
  const segments = segmentIds ?? (segmentId === undefined ? [] : [segmentId]);
  const built = segments.map((id) => ({ entityType: "netSegment", id }));
  return buildingId === undefined ? built : [...built, { entityType: "building", id: buildingId }];
}

async function takeBack({ label, opIds }: Operation): Promise<string> {
  let paid = 0;
  for (const undoes of opIds.toReversed()) paid += (await sendCommand("undo", { undoes })).refund ?? 0;
  return `Undone: ${label}.${paid > 0 ? ` ${formatWholeNumber(paid)} came back.` : ""}`;
}

async function bulldoze({ label, built }: Operation): Promise<string> {
  if (built.length === 0) return `${label}: paint another zone over it instead.`;
  for (const each of built.toReversed()) await sendCommand("bulldoze", each);
  return `Bulldozed: ${label}.`;
}
