/** Records from the microphone, with a level meter. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";
import { formatTime } from "./words.js";

/** Turns off speech processing, which would distort music. */
const UNPROCESSED = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };

interface Recording {
  stop: () => void;
}

export function Recorder({ label, onFile }: { label: string; onFile: (file: File) => void }) {
  const [recording, setRecording] = useState<Recording | null>(null);
  const [level, setLevel] = useState(0);
  const [seconds, setSeconds] = useState(0);
  const [failure, setFailure] = useState("");
  const running = useRef(recording);
  running.current = recording;
  useEffect(() => () => running.current?.stop(), []);

  const start = async () => {
    setFailure("");
    try {
      const listen = (now: { level: number; seconds: number }) => {
        setLevel(now.level);
        setSeconds(now.seconds);
      };
      setRecording(
        await record(listen, (file) => {
          setRecording(null);
          onFile(file);
        }),
      );
    } catch (error) {
      setFailure(refusalOf(error));
    }
  };
  return (
    <div class="row">
      <Button
        aria-pressed={recording !== null}
        aria-label={recording === null ? label : t("Stop recording")}
        onClick={() => (recording === null ? void start() : recording.stop())}
      >
        {recording === null ? t("● Record") : t("■ Stop")}
      </Button>
      {recording !== null && (
        <>
          <meter aria-label={t("Level")} min={0} max={1} high={0.95} value={level} />
          <span class="faint">{formatTime(seconds)}</span>
        </>
      )}
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
    </div>
  );
}

/** @throws DOMException if there is no microphone, or the user refuses it */
async function record(
  onLevel: (now: { level: number; seconds: number }) => void,
  onFile: (file: File) => void,
): Promise<Recording> {
  if (navigator.mediaDevices === undefined) throw new DOMException("", "SecurityError");
  const stream = await navigator.mediaDevices.getUserMedia({ audio: UNPROCESSED });
  const recorder = new MediaRecorder(stream);
  const parts: Blob[] = [];
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const startMs = performance.now();
  const meter = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const level = samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0);
    onLevel({ level, seconds: (performance.now() - startMs) / 1000 });
  }, 50);
  recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
  recorder.addEventListener("stop", () => {
    clearInterval(meter);
    for (const track of stream.getTracks()) track.stop();
    void context.close();
    const type = recorder.mimeType;
    const name = `${t("Recording")} ${new Date().toLocaleTimeString()}.${/mp4/.test(type) ? "m4a" : "webm"}`;
    onFile(new File(parts, name.replaceAll(":", "-"), { type }));
  });
  recorder.start();
  return { stop: () => recorder.state === "recording" && recorder.stop() };
}

function refusalOf(error: unknown): string {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError") return t("The browser does not allow the microphone on this page.");
  if (name === "SecurityError") return t("Recording needs https, or a studio that is opened at localhost.");
  return t("There is no microphone.");
}
