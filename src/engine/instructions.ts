/** What the renderer is told to do; its weights were trained on these strings (reference/engine.md 5.5). */
import type { TaskType } from "./addon.js";

export const textToMusicInstruction = "Fill the audio semantic mask based on the given conditions:";
const coverInstruction = "Generate audio semantic tokens based on the given conditions:";

export interface TaskDescription {
  task: TaskType;
  /** "": derived from the rest. */
  instruction: string;
  /** extract and lego; "" for none. */
  trackName: string;
  /** complete. */
  trackClasses: readonly string[];
  hasAudioCodes: boolean;
}

/** The client's own words, else the task's. */
export function instructionOf(description: TaskDescription): string {
  const { instruction, task, hasAudioCodes } = description;
  if (instruction.trim() !== "") return instruction.trim();
  const track = description.trackName.trim().toUpperCase();
  switch (task) {
    case "text2music":
      return hasAudioCodes ? coverInstruction : textToMusicInstruction;
    case "cover":
      return coverInstruction;
    case "repaint":
      return "Repaint the mask area based on the given conditions:";
    case "extract":
      return `Extract the ${track === "" ? "" : `${track} `}track from the audio:`;
    case "lego":
      return `Generate the ${track === "" ? "" : `${track} `}track based on the audio context:`;
    case "complete": {
      const classes = description.trackClasses.map((name) => name.trim().toUpperCase()).filter(Boolean);
      return `Complete the input track${classes.length === 0 ? "" : ` with ${classes.join(" | ")}`}:`;
    }
  }
}

/** The caption as checkpoints trained on stems know it; without the song where a segment is asked for. */
export function legoCaption(
  caption: string,
  globalCaption: string,
  instruction: string,
  chunkMask: "explicit" | "auto",
): string {
  const song = instruction.toLowerCase().includes("a segment") ? "" : `Global: ${globalCaption}\n`;
  return `${song}Local: ${caption}\nMask Control: ${chunkMask === "explicit"}`;
}
