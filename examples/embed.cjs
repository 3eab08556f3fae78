/**
 * The CommonJS version of embed.mjs.
 *
 * node examples/embed.cjs "slow bossa nova, nylon guitar" song.mp3
 */
const { extname } = require("node:path");
const { createEngine, loadConfig, makeSongs, parseGenerationRequest } = require("carillon");

async function main(prompt, file) {
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
}

main(...process.argv.slice(2));
