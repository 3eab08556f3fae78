/**
 * Estimates the tempo from the autocorrelation of the onset strength, weighted by common tempos (after Ellis, "Beat
 * tracking by dynamic programming", 2007). The result may be half or twice the perceived tempo.
 */

const HOP_SAMPLES = 512;
/** Maximum length of the measured excerpt. Half a minute is representative of a song. */
const MAX_SECONDS = 30;
const BPM_RANGE = { min: 50, max: 200 };
/** Listeners prefer tempos near this one. PREFERENCE_OCTAVES is the standard deviation of the preference. */
const PREFERRED_BPM = 120;
const PREFERENCE_OCTAVES = 1;
/** The score of a tempo averages the autocorrelation at 1 to this number of beats. */
const BEATS_AHEAD = 4;

/**
 * A tempo is clear if the autocorrelation at its beats is at least this share of the onset strength's variance. Songs
 * with beats have a third and more; weak beats are often measured at 4/3 or 3/2 of their tempo.
 */
const CLEAR_PULSE = 0.3;
/** A tempo is not clear if another one scores more than this share of its score. */
const RIVAL_SHARE = 0.8;
/** A tempo is not clear if the audio has fewer of its beats. */
const MIN_BEATS = 2 * BEATS_AHEAD;
/** Tempos at least this far apart are rivals. */
const RIVAL_OCTAVES = 0.08;

/** Beats per minute of planar stereo, an integer from 50 to 200; null for silence. */
export function measureTempo(audio: Float32Array, sampleRate: number): number | null {
  return bestOf(tempoScores(audio, sampleRate))?.bpm ?? null;
}

/** Like `measureTempo`, but null if the audio is short, the beat is weak, or half, twice or another tempo fits nearly as well. */
export function clearTempo(audio: Float32Array, sampleRate: number): number | null {
  const scores = tempoScores(audio, sampleRate);
  const best = bestOf(scores);
  if (best === undefined || best.pulse < CLEAR_PULSE) return null;
  const minutes = audio.length / 2 / sampleRate / 60;
  if (minutes * best.bpm < MIN_BEATS) return null;
  const rivals = scores.filter(({ bpm }) => Math.abs(Math.log2(bpm / best.bpm)) >= RIVAL_OCTAVES);
  return rivals.some(({ score }) => score > RIVAL_SHARE * best.score) ? null : best.bpm;
}

interface TempoScore {
  bpm: number;
  /** Mean autocorrelation at the beats, as a share of the variance. */
  pulse: number;
  /** The pulse, weighted by the preference for the tempo. */
  score: number;
}

/** Scores of all tempos; none for silence. */
function tempoScores(audio: Float32Array, sampleRate: number): TempoScore[] {
  const onsets = onsetStrength(audio, sampleRate);
  if (onsets.every((onset) => onset === 0)) return [];
  const hopsPerMinute = (60 * sampleRate) / HOP_SAMPLES;
  const maxLag = Math.min(onsets.length - 1, Math.ceil((BEATS_AHEAD * hopsPerMinute) / BPM_RANGE.min) + 1);
  const likeness = autocorrelation(onsets, maxLag);
  const [variance = 0] = likeness;
  return Array.from({ length: BPM_RANGE.max - BPM_RANGE.min + 1 }, (_, index) => {
    const bpm = BPM_RANGE.min + index;
    const beats = pulse(likeness, hopsPerMinute / bpm);
    return { bpm, pulse: beats / variance, score: preference(bpm) * beats };
  });
}

function bestOf(scores: readonly TempoScore[]): TempoScore | undefined {
  const highest = Math.max(...scores.map(({ score }) => score));
  return scores.find(({ score }) => score === highest);
}

/** Increase of loudness at each hop: in the full band plus in the treble. A decrease counts as 0. */
function onsetStrength(audio: Float32Array, sampleRate: number): Float64Array {
  const length = audio.length / 2;
  const measured = Math.min(length, MAX_SECONDS * sampleRate);
  const begin = Math.floor((length - measured) / 2);
  const hops = Math.floor(measured / HOP_SAMPLES);
  const loudness = [new Float64Array(hops), new Float64Array(hops)] as const;
  let before = 0;
  for (let hop = 0; hop < hops; hop += 1) {
    let whole = 0;
    let treble = 0;
    for (let i = begin + hop * HOP_SAMPLES; i < begin + (hop + 1) * HOP_SAMPLES; i += 1) {
      const sample = (audio[i] as number) + (audio[length + i] as number);
      whole += sample * sample;
      treble += (sample - before) ** 2;
      before = sample;
    }
    loudness[0][hop] = whole;
    loudness[1][hop] = treble;
  }
  const onsets = new Float64Array(hops);
  for (const energy of loudness) {
    const floor = 1e-3 * mean(energy);
    if (floor === 0) continue;
    for (let hop = 1; hop < hops; hop += 1) {
      const rise = Math.log(((energy[hop] as number) + floor) / ((energy[hop - 1] as number) + floor));
      (onsets[hop] as number) += Math.max(0, rise);
    }
  }
  return onsets;
}

function autocorrelation(values: Float64Array, maxLag: number): Float64Array {
  const average = mean(values);
  const centred = values.map((value) => value - average);
  const result = new Float64Array(maxLag + 1);
  for (let lag = 0; lag <= maxLag; lag += 1) {
    let sum = 0;
    for (let i = lag; i < centred.length; i += 1)
      sum += (centred[i] as number) * (centred[i - lag] as number);
    result[lag] = sum / (centred.length - lag);
  }
  return result;
}

/** Mean autocorrelation at 1 to BEATS_AHEAD beats, if a beat is `hops` long. Interpolates between hops. */
function pulse(likeness: Float64Array, hops: number): number {
  let sum = 0;
  let count = 0;
  for (let beat = 1; beat <= BEATS_AHEAD; beat += 1) {
    const lag = Math.floor(beat * hops);
    const [here, next] = [likeness[lag], likeness[lag + 1]];
    if (here === undefined || next === undefined) break;
    sum += here + (beat * hops - lag) * (next - here);
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}

function preference(bpm: number): number {
  return Math.exp(-0.5 * (Math.log2(bpm / PREFERRED_BPM) / PREFERENCE_OCTAVES) ** 2);
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
