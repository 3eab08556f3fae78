/** A parsed request: grouped once, as the engine takes it, and then unchanged. It is stored as JSON with its task. */
import type { z } from "zod";
import type { Seed } from "../../engine/types.js";
import type { Fields, Grouped } from "../../parameters.js";
import type { UploadKind } from "../audio/uploads.js";
import type { MusicalFacts, StatedFacts } from "../song/stated-facts.js";
import type { RequestedAdapter } from "./loras.js";
import type { GenerationParameters, ownParts, parameterGroups } from "./schema.js";
import type { Analysis, TaskType } from "./task-types.js";

/** A recording, or latents in its place. */
export interface AudioInput {
  /** Form field of the recording, which also says whether it is audio or latents. */
  kind: UploadKind;
  /** Path as sent by the client; once the task is accepted, the resolved path of the file. */
  path: string;
  /** Whether the file was uploaded for this task. An upload is deleted with the task. */
  isUpload: boolean;
  /**
   * Size of an upload. Absent in tasks of older versions, whose uploads were deleted at the end of the task.
   */
  bytes?: number;
}

/** Fields of a request that hold a recording. */
export const INPUTS = ["source", "reference"] as const;

export function inputsOf(request: Pick<GenerationRequest, (typeof INPUTS)[number]>): AudioInput[] {
  return INPUTS.flatMap((name) => request[name] ?? []);
}

/** What differs between the songs of a task. */
export interface RequestedSong {
  seed: Seed;
  /** Seed of the language model; null: `seed`. */
  lmSeed: Seed | null;
  /** Audio codes from the client; null: none. Without `own` parts, the codes of all songs have the same length. */
  codes: number[] | null;
  /** Stem that the song is (extract, lego), or stems to add to the source (complete). */
  tracks: string[];
  /** Texts and facts that differ from those of the request (parameter `songs`); absent: none. */
  own?: OwnParts;
}

export type OwnParts = Partial<z.output<typeof ownParts>>;

/** Words of one song. */
export function wordsOf({ words }: Pick<GenerationRequest, "words">, { own }: RequestedSong) {
  const { prompt = words.prompt, lyrics = words.lyrics, vocalLanguage = words.vocalLanguage } = own ?? {};
  return { ...words, prompt, lyrics, vocalLanguage };
}

type Groups = Grouped<typeof parameterGroups>;

export interface GenerationRequest extends Groups {
  taskType: TaskType;
  /** Kind of analysis; null if the task makes songs. */
  analysis: Analysis | null;
  /** Name of the model; null: the default model. */
  model: string | null;
  /** Adapters of the task. null: the loaded adapters, which submission writes here. */
  loras: RequestedAdapter[] | null;
  facts: Groups["facts"] & {
    /** Facts stated in the prompt; they fill those that the client left empty. */
    stated: StatedFacts;
    /** What the record of the source states, if the source is a finished song; submission writes it here. */
    source: MusicalFacts | null;
  };
  /** Source recording; null if the task uses none. */
  source: AudioInput | null;
  /** Timbre reference; null: none. */
  reference: AudioInput | null;
  songs: RequestedSong[];
  /** URL to call when the task ends. */
  callbackUrl: string | null;
  /** Whether the task expires after an hour, see `Task.isTemporary`. Absent in tasks of older versions. */
  isTemporary?: boolean;
  /** Parameters that the client set, and that may turn out to have no effect when the song is rendered. */
  chosen: (keyof GenerationParameters)[];
  /** Request in the words of another interface (`../acestep-cpp`), from which its answer is made. */
  original?: unknown;
  /** Defaults of the endpoint that took the request, if it has any. */
  defaults?: Fields;
  /** Messages about corrected or ignored values. */
  warnings: string[];
}
