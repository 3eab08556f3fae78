/** Plays all songs equally loud: the gain of each song, and the user's volume. */
import type WaveSurfer from "wavesurfer.js";
import type { Song } from "./api.js";

/** Integrated loudness of all songs in LUFS, as streaming services play them. */
const TARGET_LUFS = -14;
/** Smallest gain that is worth an amplifier, which some browsers silence in the background. */
const AUDIBLE_GAIN = 1.25;

const amplifiers = new WeakMap<WaveSurfer, GainNode>();
let volume = 1;
let gain = 1;

/** Gain of a song: it is not amplified beyond its peak. Songs of unknown loudness stay as they are. */
export function gainOf({ loudness }: Song, channels: readonly Float32Array[]): number {
  if (loudness === undefined) return 1;
  const peak = channels.reduce((max, samples) => samples.reduce((m, x) => Math.max(m, Math.abs(x)), max), 0);
  return Math.min(10 ** ((TARGET_LUFS - loudness) / 20), 1 / (peak || 1));
}

export function setUserVolume(wave: WaveSurfer, wanted: number): void {
  volume = wanted;
  apply(wave);
}

export function setGain(wave: WaveSurfer, wanted: number): void {
  gain = wanted < 1 || wanted >= AUDIBLE_GAIN ? wanted : 1;
  apply(wave);
}

/** An audio element can only attenuate, so an amplifier is added for the first song that needs one. */
function apply(wave: WaveSurfer): void {
  wave.setVolume(volume * Math.min(gain, 1));
  const element = wave.getMediaElement();
  if (gain > 1 && element !== null && !amplifiers.has(wave)) {
    const context = new AudioContext();
    const amplifier = context.createGain();
    context.createMediaElementSource(element).connect(amplifier).connect(context.destination);
    wave.on("play", () => void context.resume());
    amplifiers.set(wave, amplifier);
  }
  const amplifier = amplifiers.get(wave);
  if (amplifier !== undefined) amplifier.gain.value = Math.max(gain, 1);
}
