/** The songs of a request: what differs between them. */
import type { Seed } from "../../engine/types.js";
import { type Fields, namesOf } from "../../parameters.js";
import { assignSeeds } from "../song/seeds.js";
import type { GenerationRequest, OwnParts, RequestedSong } from "./generation-request.js";
import { type GenerationParameters, ownParts } from "./schema.js";
import { makesStems, readsSourceOnly } from "./task-types.js";

type Parameters = Pick<GenerationParameters, "taskType" | "trackName" | "trackClasses" | "lmSeeds"> & {
  /** Codes in use, one list per song; null: none. */
  audioCodes: readonly (number[] | null)[] | null;
  /** Parts of their own, one per song; empty: none. */
  own?: readonly OwnParts[];
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
  const { lmSeeds, audioCodes, own = [] } = parameters;
  return seeds.map((seed, index) => ({
    seed,
    lmSeed: lmSeeds[lmSeeds.length > 1 ? index : 0] ?? null,
    codes: audioCodes?.[index] ?? null,
    tracks: tracksOf(parameters, index),
    ...(own[index] && { own: own[index] }),
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
  const codes = songs.map(({ codes }) => codes);
  const own = songs.flatMap(({ own }) => own ?? []);
  return {
    // Seeds have no effect when a recording is only encoded or decoded.
    ...((!readsSourceOnly(analysis) || analysis === "full") && {
      use_random_seed: false,
      seed: songs.map(({ seed }) => seed),
    }),
    lm_seed: isShared
      ? lmSeeds.slice(0, 1).filter((lmSeed) => lmSeed !== null)
      : lmSeeds.map((lmSeed) => lmSeed ?? -1),
    track_name: makesStems(taskType) && !hasOwnStems ? (stems[0] ?? "") : "",
    track_classes: hasOwnStems || taskType === "complete" ? stems : [],
    ...(!hasOwnStems && { batch_size: songs.length }),
    ...(codes.some((list) => list !== null) && { audio_code_string: codes, use_audio_codes: true }),
    ...(own.length > 0 && { songs: own.map(ownFields) }),
  };
}

function ownFields(own: OwnParts): Fields {
  const entries = Object.entries(ownParts.shape).map(([key, type]) => [
    namesOf(type)[0],
    own[key as keyof OwnParts],
  ]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
