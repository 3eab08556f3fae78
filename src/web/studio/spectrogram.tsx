/** Spectrograms below waveforms. */
import { useEffect, useRef, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import { Button } from "./button.js";
import { t } from "./language.js";
import { watchTheme } from "./theme.js";

const HEIGHT = 96;

async function makePlugin() {
  const { default: SpectrogramPlugin } = await import("wavesurfer.js/dist/plugins/spectrogram.js");
  return SpectrogramPlugin.create({ height: HEIGHT, fftSamples: 1024, autoGain: true });
}

interface SpectrogramToggleProps {
  isShown: boolean;
  label: string;
  onToggle: () => void;
}

export function SpectrogramToggle({ isShown, label, onToggle }: SpectrogramToggleProps) {
  return (
    <Button
      class="tag spectrogram"
      aria-pressed={isShown}
      aria-label={t("Spectrogram of {name}", { name: label })}
      title={t("Spectrogram")}
      onClick={onToggle}
    >
      ▒
    </Button>
  );
}

/** Button that adds a spectrogram to a waveform. */
export function SpectrogramButton({ wave, label }: { wave: WaveSurfer | null; label: string }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (wave === null || !isShown) return;
    let remove = () => {};
    let isOver = false;
    makePlugin().then(
      (plugin) => {
        if (isOver) return;
        wave.registerPlugin(plugin);
        remove = () => plugin.destroy();
      },
      () => setShown(false),
    );
    return () => {
      isOver = true;
      remove();
    };
  }, [wave, isShown]);
  return <SpectrogramToggle isShown={isShown} label={label} onToggle={() => setShown(!isShown)} />;
}

interface AnalysedSongProps {
  audio: HTMLAudioElement;
  /** Called if the song cannot be shown. */
  onFail: () => void;
}

/** Exact waveform and spectrogram of the song that plays, which must be downloaded as a whole. */
export function AnalysedSong({ audio, onFail }: AnalysedSongProps) {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let destroy = () => {};
    let isOver = false;
    Promise.all([import("./waveform.js"), makePlugin()]).then(([{ makeWave, waveColors }, plugin]) => {
      if (isOver) return;
      const options = { media: audio, height: 48, dragToSeek: true, plugins: [plugin] };
      const made = makeWave(container.current, options);
      made.on("error", onFail);
      const unwatch = watchTheme(() => made.setOptions(waveColors()));
      destroy = () => {
        unwatch();
        made.destroy();
      };
    }, onFail);
    return () => {
      isOver = true;
      destroy();
    };
  }, []);
  return <div class="canvas" ref={container} />;
}
