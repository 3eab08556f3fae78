/**
 * Program for ffmpeg.test.ts. Opens files until no descriptor is free, then measures a recording and encodes a song.
 * Prints both results as JSON. Arguments: paths of the recording and of the song.
 */
import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeAudio, measureAudio } from "../../../src/music/audio/decode.js";
import { encodeAudio } from "../../../src/music/audio/encode.js";
import { toHttpError } from "../../../src/music/errors.js";

const [recording, song] = process.argv.slice(2) as [string, string];
const samplesPerChannel = 48_000;
const audio = new Float32Array(2 * samplesPerChannel);

const taken: number[] = [];
try {
  for (;;) taken.push(openSync("/dev/null", "r"));
} catch {
  // All descriptors are in use.
}
const measured = measureAudio({ path: recording, name: "src_audio", maxSeconds: 600 });
const { status, detail, headers } = toHttpError(await measured.catch((error: unknown) => error));

let ended = 0;
const encoding = encodeAudio({ audio, samplesPerChannel, sampleRate: 48_000, format: "mp3", path: song });
const decoding = decodeAudio({ path: recording, name: "src_audio", maxSeconds: 600 });
for (const work of [encoding, decoding]) work.finally(() => ended++).catch(() => {});
// Wait so long that encoding and decoding both retry the start of ffmpeg.
await sleep(500);
const endedEarly = ended;
for (const descriptor of taken) closeSync(descriptor);
const result = {
  status,
  detail,
  headers,
  endedEarly,
  bytes: (await encoding).bytes,
  samples: (await decoding).length,
};
process.stdout.write(JSON.stringify(result));
