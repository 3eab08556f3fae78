/**
 * Uses the native core without the server. The language model plans audio codes, and the renderer turns the codes into
 * audio. At the end, the example encodes the audio to codes again.
 *
 * node examples/native.mjs "slow bossa nova, nylon guitar" song.wav
 */
import { writeFile } from "node:fs/promises";
import {
  Checkpoints,
  codesPrompt,
  encodeLyricPrompt,
  encodeTextPrompt,
  instructionOf,
  loadAddon,
  renderParametersOf,
  Tokenizer,
} from "carillon/native";

const [caption, file] = process.argv.slice(2);
const lyrics = "[Instrumental]";
const seconds = 10;
const call = { signal: AbortSignal.timeout(600_000) };
const placement = { device: "auto", dtype: "auto", quantization: "none", offload: false };

const addon = loadAddon(console.error);
const checkpoints = new Checkpoints("checkpoints");
const model = checkpoints.renderer("carillon-nano");
const renderer = await addon.loadRenderer({ ...placement, ...model, offloadModel: false }, call);
const codes = await plan();
console.log(`planned ${codes.length} audio codes`);
const planar = await render(codes);
await writeFile(file, wav(planar, renderer.info.sampleRate));
const encoded = await renderer.encodeCodes(planar, call);
console.log(`${planar.length / 2} samples per channel, encoded to ${encoded.length} audio codes`);
await renderer.close();

/** Plans five codes per second with the language model. */
async function plan() {
  const { model, tokenizerDirectory } = checkpoints.languageModel("carillon-nano/lm");
  const tokenizer = await Tokenizer.load(tokenizerDirectory);
  const vocabulary = tokenizer.vocabulary(tokenizer.size, renderer.info.codebookSize);
  const options = { ...placement, model, maxContextTokens: 1024, vocabulary };
  const languageModel = await addon.loadLanguageModel(options, call);
  const count = 5 * seconds;
  const promptTokenIds = await tokenizer.encode(codesPrompt(caption, lyrics, "bpm: 90"));
  const sampling = { temperature: 0.85, topK: 0, topP: 0.9, minP: 0, repetitionPenalty: 1, cfgScale: 1 };
  const program = [{ kind: "codes", count }];
  const job = { promptTokenIds, program, seed: 1n, maxNewTokens: count, stage: "codes", ...sampling };
  const [{ tokenIds }] = await languageModel.generate([job], call);
  await languageModel.close();
  await tokenizer.close();
  return tokenizer.audioCodes(tokenIds);
}

/** Renders stereo at 48 kHz: all samples of the left channel, then of the right. */
async function render(audioCodes) {
  const tokenizer = await Tokenizer.load(model.tokenizerDirectory);
  const task = { task: "text2music", instruction: "", trackName: "", trackClasses: [], hasAudioCodes: true };
  const metadata = { bpm: 90, keyScale: "", timeSignature: "4", durationSeconds: seconds };
  const song = { instruction: instructionOf(task), caption, lyrics, language: "unknown", metadata };
  const prompt = {
    text: await encodeTextPrompt(tokenizer, song),
    lyrics: await encodeLyricPrompt(tokenizer, song),
    plainText: null,
    timedLyrics: null,
  };
  await tokenizer.close();
  const recordings = { source: null, referenceAudio: null, adapters: [] };
  const samples = seconds * renderer.info.sampleRate;
  const job = {
    task: "text2music",
    songs: [{ prompt, codes: audioCodes, seed: 1n }],
    samples,
    ...recordings,
  };
  const { songs } = await renderer.render({ ...job, ...renderParametersOf({}) }, call);
  return songs[0].audio;
}

/** Returns a WAV file of interleaved 32-bit floats. */
function wav(planar, sampleRate) {
  const length = planar.length / 2;
  const samples = Float32Array.from(planar, (_, i) => planar[(i % 2) * length + (i >> 1)]);
  const header = Buffer.alloc(44);
  for (const [at, text] of Object.entries({ 0: "RIFF", 8: "WAVEfmt ", 36: "data" }))
    header.write(text, Number(at));
  const [format, channels, bytes] = [3, 2, 4];
  for (const [at, value] of Object.entries({ 20: format, 22: channels, 32: channels * bytes, 34: 8 * bytes }))
    header.writeUInt16LE(value, Number(at));
  const sizes = { 4: 36 + samples.byteLength, 16: 16, 40: samples.byteLength };
  for (const [at, value] of Object.entries({ ...sizes, 24: sampleRate, 28: sampleRate * channels * bytes }))
    header.writeUInt32LE(value, Number(at));
  return Buffer.concat([header, Buffer.from(samples.buffer)]);
}
