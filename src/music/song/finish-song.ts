/** Finishes a rendered song: scores it, writes its files and describes it. */
import { rm } from "node:fs/promises";
import { type LanguageModelInfo, type Rendering, SAMPLE_RATE, type SongLatents } from "../../engine/types.js";
import { encodeAudio } from "../audio/encode.js";
import { writeLatents } from "../audio/latents-file.js";
import { peaksOf } from "../audio/peaks.js";
import { wordsOf } from "../request/generation-request.js";
import type { OutputParameters } from "../request/output-parameters.js";
import { isInstrumental, type PlannedComposition } from "./composition.js";
import type { ReadySlot } from "./prepare.js";
import type { Recordings } from "./recordings.js";
import { scoreSong } from "./scoring.js";
import type { Destination, SongContext } from "./song-context.js";
import { factsOf } from "./song-facts.js";
import { describeSong, metasOf } from "./song-record.js";
import type { FinishedSong } from "./task-result.js";
import { titleOf } from "./title.js";

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

export async function finishSong(context: SongContext, parts: SongParts): Promise<FinishedSong> {
  const { request, progress, signal, warnings } = context;
  const { index, recordings, lm, slot, song, rendered, writesTags, destination } = parts;
  const { output } = request;
  progress.beginSongs(index, 1);
  progress.enter("encode");
  warnings.push(...rendered.warnings);
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
  const bytes = await encodeAudio({
    audio,
    samplesPerChannel,
    sampleRate: SAMPLE_RATE,
    format: output.audioFormat,
    finish: output,
    ...(writesTags && { tags }),
    path,
    signal,
  });
  const latents = output.returnLatents
    ? await storeLatents(rendered.latents, destination(index, "latents"), path)
    : null;
  const inputs = { song, slot, rendered, metas, isTempoMeasured, scores, peaks: peaksOf(audio) };
  return {
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

function warnOfLongFades(
  { fadeInSeconds, fadeOutSeconds }: OutputParameters,
  songSeconds: number,
  warnings: string[],
): void {
  for (const [name, seconds] of Object.entries({ fade_in: fadeInSeconds, fade_out: fadeOutSeconds })) {
    if (seconds > songSeconds) {
      warnings.push(
        `${name} of ${seconds} seconds was shortened to the length of the song, ${songSeconds.toFixed(2)}`,
      );
    }
  }
}
