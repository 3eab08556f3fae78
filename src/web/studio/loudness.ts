/** Plays all songs equally loud: the gain of each song, and the user's volume. */
import type { Song } from "./api.js";

/** Integrated loudness of all songs in LUFS, as streaming services play them. */
const TARGET_LUFS = -14;
/** Smallest gain that is worth an amplifier, which some browsers silence in the background. */
const AUDIBLE_GAIN = 1.25;

const amplifiers = new WeakMap<HTMLMediaElement, GainNode>();
let volume = 1;
let gain = 1;

/**
 * Gain of a song: it is not amplified beyond its peak, nor if its peak is unknown. Songs of unknown loudness stay as
 * they are.
 */
export function gainOf({ loudness, peak_level: peak = 1 }: Song): number {
  return loudness === undefined ? 1 : Math.min(10 ** ((TARGET_LUFS - loudness) / 20), 1 / peak);
}

export function setUserVolume(audio: HTMLMediaElement, wanted: number): void {
  volume = wanted;
  apply(audio);
}

export function setGain(audio: HTMLMediaElement, wanted: number): void {
  gain = wanted < 1 || wanted >= AUDIBLE_GAIN ? wanted : 1;
  apply(audio);
}

/** An audio element can only attenuate, so an amplifier is added for the first song that needs one. */
function apply(audio: HTMLMediaElement): void {
  audio.volume = volume * Math.min(gain, 1);
  if (gain > 1 && !amplifiers.has(audio)) {
    const context = new AudioContext();
    const amplifier = context.createGain();
    context.createMediaElementSource(audio).connect(amplifier).connect(context.destination);
    audio.addEventListener("play", () => void context.resume());
    amplifiers.set(audio, amplifier);
  }
  const amplifier = amplifiers.get(audio);
  if (amplifier !== undefined) amplifier.gain.value = Math.max(gain, 1);
}
