/** Raw samples as OpenAI's clients expect them of the format pcm16: 16 bits, little-endian, mono at 24 kHz. */
import { stat } from "node:fs/promises";
import { openRecording } from "./decode.js";
import { INPUT_PATH, startFfmpeg } from "./ffmpeg.js";

const SAMPLE_RATE = 24_000;
const TIMEOUT_SECONDS = 120;
const MAX_WAIT_SECONDS = 60;

/** Converts a wav file, which is larger, to a new file at `target`. @throws FfmpegError, or the signal's reason */
export async function writePcm16(song: string, target: string, signal: AbortSignal): Promise<void> {
  const file = await openRecording(song, { maxWaitSeconds: MAX_WAIT_SECONDS, signal });
  const { size } = await stat(song);
  const input = ["-protocol_whitelist", "file", "-i", `file:${INPUT_PATH}`];
  const output = ["-ar", String(SAMPLE_RATE), "-ac", "1", "-f", "s16le", "-c:a", "pcm_s16le", "-y"];
  const { exited } = await startFfmpeg([...input, ...output, `file:${target}`], {
    stdin: "ignore",
    stdout: "ignore",
    input: { path: song, file },
    fileBytes: size,
    timeoutSeconds: TIMEOUT_SECONDS,
    maxWaitSeconds: MAX_WAIT_SECONDS,
    signal,
  }).finally(() => file.close());
  await exited;
}
