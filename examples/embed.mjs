/**
 * Uses the engine in your own program, without a server: writes one song to a file. First run `npm install carillon` in
 * your application, or `npm start` or `npm run setup` in a clone. embed.cjs is the CommonJS version.
 *
 * node examples/embed.mjs "slow bossa nova, nylon guitar" song.mp3
 */
import { extname } from "node:path";
import { createEngine, loadConfig, makeSongs, parseGenerationRequest } from "carillon";

const [prompt, file] = process.argv.slice(2);
const config = loadConfig(process.env);
const engine = createEngine(config, console.error);
try {
  const parameters = { prompt, audio_duration: 10, batch_size: 1, audio_format: extname(file).slice(1) };
  const song = await makeSongs(engine, parseGenerationRequest(parameters, engine), {
    destination: () => ({ name: file, path: file }),
    maxSourceSeconds: config.sourceMaxSeconds,
    signal: AbortSignal.timeout(600_000),
    onProgress: ({ value, stage }) => console.log(`${stage} ${Math.round(value * 100)} %`),
  });
  console.log(`seed ${song.seeds[0]}, ${song.metas.bpm} bpm, ${song.metas.keyscale}`);
} finally {
  await engine.close();
}
