/** The songs of a request: what differs between them. */
import type { Seed } from "../../engine/types.js";
import type { Fields } from "../../parameters.js";
import { assignSeeds } from "../song/seeds.js";
import type { GenerationRequest, RequestedSong } from "./generation-request.js";
import type { GenerationParameters } from "./schema.js";
import { makesStems } from "./task-types.js";

type Parameters = Pick<GenerationParameters, "taskType" | "trackName" | "trackClasses" | "lmSeeds"> & {
  /** Codes in use, one list per song; null: none. */
  audioCodes: readonly number[][] | null;
};

/** With `track_classes`, a single seed applies to all stems. Otherwise it applies only to the first song. */
export function drawSongs(
  parameters: Parameters & Pick<GenerationParameters, "useRandomSeed" | "seed" | "batchSize">,
  draw: () => Seed,
): RequestedSong[] {
  const { useRandomSeed, seed, batchSize, taskType, trackClasses } = parameters;
  const isShared = seed.length === 1 && makesStems(taskType) && trackClasses.length > 0;
  const requested = isShared ? trackClasses.map(() => seed[0] ?? null) : seed;
  const seeds = assignSeeds(useRandomSeed ? [] : requested, batchSize, draw);
  return requestedSongs(parameters, seeds);
}

/** Returns one entry for each seed. A single seed of the language model applies to all songs. */
export function requestedSongs(parameters: Parameters, seeds: readonly Seed[]): RequestedSong[] {
  const { lmSeeds, audioCodes } = parameters;
  return seeds.map((seed, index) => ({
    seed,
    lmSeed: lmSeeds[lmSeeds.length > 1 ? index : 0] ?? null,
    codes: audioCodes?.[index] ?? null,
    tracks: tracksOf(parameters, index),
  }));
}

function tracksOf({ taskType, trackName, trackClasses }: Parameters, index: number): string[] {
  if (taskType === "complete") return trackClasses;
  const stem = trackClasses[index] ?? trackName;
  return makesStems(taskType) && stem !== "" ? [stem] : [];
}

/** Returns the fields of a request body that give these songs. */
export function songFields({
  taskType,
  analysis,
  songs,
}: Pick<GenerationRequest, "taskType" | "analysis" | "songs">): Fields {
  const stems = [...new Set(songs.flatMap(({ tracks }) => tracks))];
  const hasOwnStems = makesStems(taskType) && stems.length > 1;
  const lmSeeds = songs.map(({ lmSeed }) => lmSeed);
  const isShared = new Set(lmSeeds).size <= 1;
  const codes = songs.flatMap(({ codes }) => (codes === null ? [] : [codes]));
  return {
    // Seeds have no effect when codes are extracted.
    ...(analysis !== "codes" && { use_random_seed: false, seed: songs.map(({ seed }) => seed) }),
    lm_seed: isShared
      ? lmSeeds.slice(0, 1).filter((lmSeed) => lmSeed !== null)
      : lmSeeds.map((lmSeed) => lmSeed ?? -1),
    track_name: makesStems(taskType) && !hasOwnStems ? (stems[0] ?? "") : "",
    track_classes: hasOwnStems || taskType === "complete" ? stems : [],
    ...(!hasOwnStems && { batch_size: songs.length }),
    ...(codes.length > 0 && { audio_code_string: codes, use_audio_codes: true }),
  };
}
