/** Waveform with playback and an optional selection window. */
import { useEffect, useRef, useState } from "preact/hooks";
import type WaveSurfer from "wavesurfer.js";
import type RegionsPlugin from "wavesurfer.js/dist/plugins/regions.js";
import { Button } from "./button.js";
import { t } from "./language.js";
import { playAlone } from "./one-sound.js";
import { SpectrogramButton } from "./spectrogram.js";
import { formatTime, roundToTenths, type TimeRange } from "./words.js";

/** Id of the region that shows a window entered as numbers. */
const ENTERED_REGION = "shown";

/** Shorter drags count as clicks. */
const DRAG_THRESHOLD_PX = 1;

interface WaveProps {
  url: string;
  label: string;
  onLength: (seconds: number) => void;
  window?: TimeRange;
  onWindow?: (window: TimeRange) => void;
}

export function Wave({ url, label, onLength, window, onWindow }: WaveProps) {
  const container = useRef<HTMLDivElement>(null);
  const [wave, setWave] = useState<WaveSurfer | null>(null);
  const [regions, setRegions] = useState<ReturnType<typeof RegionsPlugin.create> | null>(null);
  const [length, setLength] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [failure, setFailure] = useState("");
  const selected = useRef(onWindow);
  selected.current = onWindow;

  useEffect(() => {
    let destroy = () => {};
    let isOver = false;
    const fail = () => setFailure(t("The browser cannot show this recording; the server may still read it."));
    Promise.all([import("./waveform.js"), import("wavesurfer.js/dist/plugins/regions.js")]).then(
      ([{ makeWave }, { default: RegionsPlugin }]) => {
        if (isOver) return;
        const plugin = RegionsPlugin.create();
        const made = makeWave(container.current, { height: 64, url, plugins: [plugin] });
        const leave = playAlone(made.getMediaElement() as HTMLMediaElement);
        destroy = () => {
          leave();
          made.destroy();
        };
        made.on("ready", (seconds) => {
          setLength(seconds);
          onLength(seconds);
        });
        made.on("play", () => setPlaying(true));
        made.on("pause", () => setPlaying(false));
        made.on("error", fail);
        const tell = (region: { start: number; end: number }) =>
          selected.current?.({ start: roundToTenths(region.start), end: roundToTenths(region.end) });
        plugin.on("region-created", (region) => {
          for (const other of plugin.getRegions()) if (other !== region) other.remove();
          if (region.id !== ENTERED_REGION) tell(region);
        });
        plugin.on("region-updated", tell);
        setWave(made);
        setRegions(plugin);
      },
      fail,
    );
    return () => {
      isOver = true;
      destroy();
      setWave(null);
      setRegions(null);
      setLength(0);
      setFailure("");
    };
  }, [url]);

  const hasWindow = window !== undefined;
  useEffect(() => {
    if (regions === null || length === 0 || !hasWindow) return;
    const stop = regions.enableDragSelection({ color: "rgb(224 110 58 / 30%)" }, DRAG_THRESHOLD_PX);
    return () => {
      stop();
      regions.clearRegions();
    };
  }, [regions, length, hasWindow]);

  useEffect(() => {
    if (regions === null || length === 0 || window === undefined) return;
    // A window of the whole recording is not shown: its region would leave no space to draw a new one.
    if (window.start === 0 && window.end === 0) {
      regions.clearRegions();
      return;
    }
    const start = Math.max(0, window.start);
    const end = window.end > 0 ? Math.min(window.end, length) : length;
    const [region] = regions.getRegions();
    if (region === undefined)
      regions.addRegion({ id: ENTERED_REGION, start, end, color: "rgb(224 110 58 / 30%)" });
    else if (
      roundToTenths(region.start) !== roundToTenths(start) ||
      roundToTenths(region.end) !== roundToTenths(end)
    )
      region.setOptions({ start, end });
  }, [regions, length, window?.start, window?.end]);

  return (
    <div class="wave">
      <Button
        class="play small"
        aria-label={isPlaying ? t("Pause {name}", { name: label }) : t("Play {name}", { name: label })}
        onClick={() => {
          const [region] = regions?.getRegions() ?? [];
          if (region === undefined || isPlaying) void wave?.playPause();
          else region.play(true);
        }}
      >
        {isPlaying ? "❚❚" : "▶"}
      </Button>
      <div ref={container} class="canvas" />
      <span class="faint time">{length > 0 ? formatTime(length) : ""}</span>
      {length > 0 && <Zoom wave={wave} length={length} />}
      <SpectrogramButton wave={wave} label={label} />
      {failure !== "" && <p class="faint">{failure}</p>}
    </div>
  );
}

const MAX_ZOOM = 32;

/** Stretches the waveform, which then scrolls. */
function Zoom({ wave, length }: { wave: WaveSurfer | null; length: number }) {
  const [zoom, setZoom] = useState(1);
  useEffect(() => {
    if (wave === null) return;
    // A zoom of 0 fits the waveform to its container.
    wave.zoom(zoom === 1 ? 0 : (zoom * wave.getWidth()) / length);
  }, [wave, zoom, length]);
  return (
    <span class="row">
      <Button class="tag" aria-label={t("Zoom out")} disabled={zoom === 1} onClick={() => setZoom(zoom / 2)}>
        −
      </Button>
      <Button
        class="tag"
        aria-label={t("Zoom in")}
        disabled={zoom === MAX_ZOOM}
        onClick={() => setZoom(zoom * 2)}
      >
        +
      </Button>
    </span>
  );
}
