/** The user's latest builds and removals, and the button that undoes them, newest first. */
import { type CommandReply, sendCommand } from "./api.js";
import { button, byId } from "./panel.js";
import { formatWholeNumber, inWords } from "./words.js";

/** A running city pays back what is undone within this time. */
export const UNDO_MS = 60_000;

export interface Command {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A command that was sent, with what it takes to undo it. */
interface Part {
  readonly label: string;
  readonly opId: string;
  /** What was built, to bulldoze it in front of a running game. */
  readonly built: readonly { readonly entityType: string; readonly id: number }[];
}

interface Operation {
  readonly label: string;
  readonly parts: readonly Part[];
  readonly doneMs: number;
}

export class Operations {
  readonly #say: (text: string) => void;
  readonly #labelOf: (prefab: string) => string;
  readonly #undoButton: HTMLButtonElement;
  #done: Operation[] = [];
  /** Whether the city is embedded. A running game has no undo: the page bulldozes there. */
  isEmbedded = true;

  /**
   * @param say shows a text to the user
   * @param labelOf display name of a building or network
   */
  constructor(say: (text: string) => void, labelOf: (prefab: string) => string) {
    this.#say = say;
    this.#labelOf = labelOf;
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
  async run(label: string, commands: readonly Command[]): Promise<CommandReply[]> {
    const replies: CommandReply[] = [];
    const parts: Part[] = [];
    const undoable = this.isEmbedded ? [...BUILDING, "bulldoze"] : BUILDING;
    try {
      for (const { name, body } of commands) {
        const opId = crypto.randomUUID();
        const reply = await sendCommand(name, { ...body, opId });
        replies.push(reply);
        if (!undoable.includes(name)) continue;
        parts.push({ label: this.#partLabel(body) ?? label, opId, built: builtBy(reply) });
      }
    } finally {
      if (parts.length > 0) this.#done.push({ label, parts, doneMs: Date.now() });
      this.#update();
      setTimeout(() => this.#update(), UNDO_MS + 100);
    }
    return replies;
  }

  /** Forgets all builds. @returns whether there were any that could still be undone */
  forget(): boolean {
    this.#update();
    const had = this.#done.length > 0;
    this.#done = [];
    this.#update();
    return had;
  }

  /** What an undo of a command would do, for the user. */
  promiseFor(name: string): string {
    if (this.isEmbedded) {
      const effect =
        name === "bulldoze" ? "brings it back" : name.includes("zone") ? "takes it back" : "pays it back";
      return `Undo within a minute ${effect}.`;
    }
    return name === "bulldoze"
      ? "This cannot be undone."
      : "Undo bulldozes it; a running game pays nothing back.";
  }

  async undo(): Promise<void> {
    this.#update();
    const last = this.#done.pop();
    if (!last) return;
    this.#update();
    this.#say(await this.#takeBack(last));
  }

  /** Undoes the parts of an operation, newest first. Returns what was undone and what was not, for the user. */
  async #takeBack(operation: Operation): Promise<string> {
    const { label, parts } = operation;
    const [undone, kept, reasons]: [Part[], Part[], string[]] = [[], [], []];
    let paid = 0;
    for (const part of parts.toReversed()) {
      try {
        const { refund = 0, warnings = [] } = await this.#revert(part);
        undone.push(part);
        paid += refund;
        reasons.push(...warnings);
      } catch (error) {
        if (error instanceof TypeError) return this.#interrupted(operation, part);
        kept.push(part);
        reasons.push(reasonIn(error as Error));
      }
    }
    const why = [...new Set(reasons)].join("; ");
    if (undone.length === 0) return `${label} cannot be undone: ${why}.`;
    const money = paid > 0 ? ` ${formatWholeNumber(paid)} came back.` : "";
    if (kept.length === 0) return `Undone: ${label}.${money}${why === "" ? "" : ` ${why}.`}`;
    return `Undone in part: ${label}.${money} Undone: ${labelsOf(undone)}. Not undone: ${labelsOf(kept)}: ${why}.`;
  }

  #revert({ opId, built }: Part): Promise<CommandReply> {
    return this.isEmbedded ? sendCommand("undo", { undoes: opId }) : bulldozeAll(built);
  }

  /** Keeps the parts that are not undone yet, from the given one on, for another attempt. */
  #interrupted(operation: Operation, part: Part): string {
    const { label, parts } = operation;
    const rest = parts.slice(0, parts.indexOf(part) + 1);
    this.#done.push({ ...operation, parts: rest });
    this.#update();
    return `The city does not answer. Undo again to undo ${rest.length < parts.length ? `the rest of ${label}` : label}.`;
  }

  #partLabel({ zone, buildingPrefab, roadPrefab }: Command["body"]): string | undefined {
    if (zone) return inWords(String(zone));
    const prefab = buildingPrefab ?? roadPrefab;
    return prefab === undefined ? undefined : this.#labelOf(String(prefab));
  }

  #update(): void {
    if (this.isEmbedded) this.#done = this.#done.filter(({ doneMs }) => Date.now() - doneMs < UNDO_MS);
    const last = this.#done.at(-1);
    this.#undoButton.disabled = !last;
    this.#undoButton.title = last
      ? `Undo: ${last.label}`
      : this.isEmbedded
        ? "Nothing was built in the last minute"
        : "Nothing to undo";
  }
}

const BUILDING = ["build-road", "build-network", "zone-rectangle", "set-zone", "place-building", "connect"];

function builtBy({ segmentId, segmentIds, buildingId }: CommandReply) {
  const segments = segmentIds ?? (segmentId === undefined ? [] : [segmentId]);
  const built = segments.map((id) => ({ entityType: "netSegment", id }));
  return buildingId === undefined ? built : [...built, { entityType: "building", id: buildingId }];
}

async function bulldozeAll(built: Part["built"]): Promise<CommandReply> {
  if (built.length === 0) throw new Error("paint another zone over it instead");
  for (const each of built.toReversed()) await sendCommand("bulldoze", each);
  return { message: "" };
}

/** Why a part is not undone, without ids of commands. */
function reasonIn({ message }: Error): string {
  return message.startsWith("No command with the opId") ? "the city no longer knows how" : message;
}

/** Labels of parts in the order in which they were sent, each once. */
function labelsOf(parts: readonly Part[]): string {
  const counts = new Map<string, number>();
  for (const { label } of parts.toReversed()) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, count]) => (count === 1 ? label : `${count} x ${label}`)).join(", ");
}
