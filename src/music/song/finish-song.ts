/** Finishes a rendered song: scores it, writes its files and describes it. */
import { rm } from "node:fs/promises";
import {
  type LanguageModelInfo,
  type PlanarAudio,
  type Rendering,
  SAMPLE_RATE,
  type SongLatents,
} from "../../engine/types.js";
import { say } from "../../notes.js";
import { peakOf } from "../audio/decode.js";
import { encodeAudio } from "../audio/encode.js";
import { writeLatents } from "../audio/latents-file.js";
import { peaksOf } from "../audio/peaks.js";
import { type GenerationRequest, wordsOf } from "../request/generation-request.js";
import type { OutputParameters } from "../request/output-parameters.js";
import { makesStems } from "../request/task-types.js";
import { isInstrumental, type PlannedComposition } from "./composition.js";
import type { ReadySlot } from "./prepare.js";
import type { Recordings } from "./recordings.js";
import { scoreSong } from "./scoring.js";
import type { Destination, SongContext } from "./song-context.js";
import { factsOf } from "./song-facts.js";
import { describeSong, type FinishedSong, metasOf } from "./song-record.js";
import { titleOf } from "./title.js";

/** Fade-out of a song that still sounds at its end. */
const CUT_FADE_SECONDS = 0.5;
/** The last 20 ms decide whether a song still sounds: they have a peak above this share (-50 dB) of the song's. */
const END_SAMPLES = SAMPLE_RATE / 50;
const AUDIBLE_SHARE = 0.003;

interface SongParts {
  index: number;
  recordings: Recordings;
  lm: LanguageModelInfo | null;
  slot: ReadySlot;
  song: PlannedComposition;
  rendered: Rendering;
  writesTags: boolean;
  destination: Destination;
}

/** May run while the next song is rendered. The song's warnings are in its result, so that they keep their order. */
export async function finishSong(job: SongContext, parts: SongParts): Promise<FinishedSong> {
  const context: SongContext = { ...job, warnings: [...parts.rendered.warnings] };
  const { request, progress, signal, warnings } = context;
  const { index, recordings, lm, slot, song, rendered, writesTags, destination } = parts;
  const { output } = request;
  const onProgress = progress.finish(index);
  const { audio, model, samplesPerChannel } = rendered;
  const seconds = samplesPerChannel / SAMPLE_RATE;
  const { scores, noScoresReason } = await scoreSong(context, { song, audio, seconds, slot: slot.slot, lm });
  warnOfLongFades(output, seconds, warnings);
  const { facts, isTempoMeasured } = factsOf(request, song, audio, recordings);
  const metas = metasOf(wordsOf(request, song.requested), { ...song.metadata, ...facts }, seconds);
  const { caption, lyrics, requested } = song;
  const title = titleOf({ request, result: { prompt: caption } });
  const { bpm, keyscale: key } = metas;
  const tags = { title, prompt: caption, lyrics, bpm, key, seed: String(requested.seed) };
  const { name, path } = destination(index, "audio");
  const { bytes, ...level } = await encodeAudio({
    audio,
    samplesPerChannel,
    sampleRate: SAMPLE_RATE,
    format: output.audioFormat,
    finish: {
      ...output,
      fadeOutSeconds: output.fadeOutSeconds ?? defaultFadeOut(request, recordings, audio),
    },
    gain: output.normalizes || hasSourceLevel(recordings) ? 1 : 1 / (rendered.latents.gain ?? 1),
    ...(writesTags && { tags }),
    path,
    signal,
    onProgress,
  });
  warnOfQuietSong(output, level.loudness, warnings);
  const latents = output.returnLatents
    ? await storeLatents(rendered.latents, destination(index, "latents"), path)
    : null;
  const inputs = { song, slot, rendered, metas, isTempoMeasured, scores, peaks: peaksOf(audio), level };
  return {
    warnings,
    file: { name, bytes, description: describeSong(request, inputs), ...(latents !== null && { latents }) },
    facts: {
      request,
      model,
      isTurbo: slot.isTurbo,
      isLegoSft: slot.isLegoSft,
      languageModel: lm,
      written: song.written,
      isLanguageNamed: song.isLanguageNamed,
      hasWords: !isInstrumental(song.lyrics),
      hasLyricTimes: rendered.lyricLines.length > 0,
      noScoresReason,
      isWholeWindow: spansAll(recordings),
    },
  };
}

/** Writes the latents of a song beside its audio file. If that fails, the audio file is deleted. */
async function storeLatents(
  latents: SongLatents,
  { name, path }: { name: string; path: string },
  songPath: string,
): Promise<{ name: string; bytes: number }> {
  try {
    return { name, bytes: await writeLatents(path, latents) };
  } catch (error) {
    await rm(songPath, { force: true });
    throw error;
  }
}

/** Whether repaint or lego make all of the source anew. */
function spansAll({ source, windows }: Recordings): boolean {
  if (source === null) return false;
  const { seconds } = source;
  const isWhole = windows.some(({ startSeconds, endSeconds }) => startSeconds <= 0 && endSeconds >= seconds);
  return windows.length === 0 || isWhole;
}

/** Whether songs keep a part of the source and its level, so that they were not normalized. */
function hasSourceLevel(recordings: Recordings): boolean {
  const { source } = recordings;
  return source !== null && (source.audio ?? source.latents.gain) !== null && !spansAll(recordings);
}

function warnOfLongFades(
  { fadeInSeconds, fadeOutSeconds }: OutputParameters,
  songSeconds: number,
  warnings: string[],
): void {
  for (const [name, seconds] of Object.entries({ fade_in: fadeInSeconds, fade_out: fadeOutSeconds })) {
    if (seconds !== null && seconds > songSeconds) {
      warnings.push(say("fade_shortened", { name, seconds, length: songSeconds.toFixed(2) }));
    }
  }
}

function warnOfQuietSong(
  { loudness: wanted, peakClip }: OutputParameters,
  loudness: number | null,
  warnings: string[],
): void {
  if (wanted === null || peakClip !== null || (loudness !== null && loudness > wanted - 0.1)) return;
  const found = loudness === null ? "silent" : `at ${loudness.toFixed(1)} LUFS`;
  warnings.push(say("loudness_not_reached", { value: wanted, found }));
}

/** Length in seconds of the fade-out of a song that was cut off. Stems keep their ends, and so does a kept source. */
function defaultFadeOut(
  { taskType }: GenerationRequest,
  { source, windows }: Recordings,
  audio: PlanarAudio,
): number {
  const keepsEnd =
    source !== null && windows.length > 0 && windows.every(({ endSeconds }) => endSeconds < source.seconds);
  return makesStems(taskType) || keepsEnd || !soundsAtEnd(audio) ? 0 : CUT_FADE_SECONDS;
}

function soundsAtEnd(audio: PlanarAudio): boolean {
  const channels = [audio.subarray(0, audio.length / 2), audio.subarray(audio.length / 2)];
  const end = Math.max(...channels.map((channel) => peakOf(channel.subarray(-END_SAMPLES))));
  return end > AUDIBLE_SHARE * peakOf(audio);
}
