/**
 * Makes the songs that an empty library of the studio offers, with the built-in model.
 *
 *     node --import tsx scripts/nano/first-songs.ts
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig } from "../../src/config.js";
import { createEngine, makeSongs, parseGenerationRequest } from "../../src/index.js";

const SONGS = [
  { name: "lo-fi", prompt: "lo-fi, warm electric piano, soft drums, mellow bass", bpm: 76, seed: 1 },
  { name: "house", prompt: "upbeat house, driving bass, bright synth chords", bpm: 124, seed: 1 },
  { name: "bossa", prompt: "slow bossa nova, nylon guitar, upright bass", bpm: 96, seed: 3 },
];
/** Three songs of this length and bit rate are small enough for a first visit on a slow network. */
const FILE = { audio_duration: 24, audio_format: "mp3", mp3_bitrate: "80k", batch_size: 1 };

const folder = fileURLToPath(new URL("../../src/web/studio/songs", import.meta.url));
const config = loadConfig({ SVC_DEVICE: "cpu" });
const engine = createEngine(config, console.error);
const rows = [];
for (const { name, ...parameters } of SONGS) {
  const request = parseGenerationRequest({ ...parameters, ...FILE, use_random_seed: false }, engine);
  const destination = () => ({ name, path: join(folder, `${name}.mp3`) });
  const { seeds, peaks, loudness, ditModel, metas } = await makeSongs(engine, request, {
    destination,
    maxSourceSeconds: config.sourceMaxSeconds,
  });
  const { keyscale = "", duration = null } = metas;
  const { prompt, bpm } = parameters;
  rows.push({
    name,
    prompt,
    seed: seeds[0],
    peaks,
    loudness,
    dit_model: ditModel,
    metas: { bpm, keyscale, duration },
  });
}
await engine.close();
writeFileSync(join(folder, "songs.json"), `${JSON.stringify(rows)}\n`);
