/** Button that shows a spectrogram below a waveform. */
import { useEffect, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import { Button } from "./button.js";
import { t } from "./language.js";

const HEIGHT = 96;

interface SpectrogramButtonProps {
  wave: WaveSurfer | null;
  label: string;
}

export function SpectrogramButton({ wave, label }: SpectrogramButtonProps) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (wave === null || !isShown) return;
    let remove = () => {};
    let isOver = false;
    import("wavesurfer.js/dist/plugins/spectrogram.js").then(
      ({ default: SpectrogramPlugin }) => {
        if (isOver) return;
        const plugin = SpectrogramPlugin.create({ height: HEIGHT, fftSamples: 1024, autoGain: true });
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
  return (
    <Button
      class="tag spectrogram"
      aria-pressed={isShown}
      aria-label={t("Spectrogram of {name}", { name: label })}
      title={t("Spectrogram")}
      onClick={() => setShown(!isShown)}
    >
      ▒
    </Button>
  );
}
