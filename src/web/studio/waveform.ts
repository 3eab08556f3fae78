/** Waveforms with the page's colours, drawn by wavesurfer. Import this module lazily: it is large. */
import WaveSurfer, { type WaveSurferOptions } from "wavesurfer.js";

/** Sample rate of the decoded audio. A spectrogram shows frequencies up to half of it. */
const WAVEFORM_SAMPLE_RATE_HZ = 24_000;

/** Creates a waveform with the common options. */
export function makeWave(
  container: HTMLElement | null,
  options: Omit<WaveSurferOptions, "container">,
): WaveSurfer {
  return WaveSurfer.create({
    container: container as HTMLElement,
    barWidth: 2,
    barGap: 1,
    barRadius: 1,
    normalize: true,
    sampleRate: WAVEFORM_SAMPLE_RATE_HZ,
    ...waveColors(),
    ...options,
  });
}

export function waveColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => {
    const probe = document.createElement("i");
    probe.style.color = style.getPropertyValue(name);
    document.body.append(probe);
    const { color: seen } = getComputedStyle(probe);
    probe.remove();
    return seen;
  };
  return { waveColor: color("--wave"), progressColor: color("--accent"), cursorColor: color("--text") };
}
