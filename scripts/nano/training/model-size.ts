/** How large the model is: everything else in its config.json files follows from this. */
export interface ModelSize {
  vae: {
    latentChannels: number;
    decoderChannels: number;
    downsamplingRatios: number[];
    channelMultiples: number[];
  };
  dit: TransformerSize & { slidingWindow: number; patchFrames: number };
  encoders: { lyricLayers: number; timbreLayers: number; timbreFrames: number; tokenizerLayers: number };
  /** Levels of the audio tokenizer's quantiser; their product is the number of audio codes. */
  quantiserLevels: number[];
  textEncoder: TransformerSize;
  languageModel: TransformerSize;
}

interface TransformerSize {
  width: number;
  innerWidth: number;
  layers: number;
  heads: number;
  keyValueHeads: number;
  headWidth: number;
  ropeTheta: number;
}

/** The VAE has 4 million weights, 8 MB in bfloat16; the silent units at 48 kHz are among them. */
const nano: ModelSize = {
  vae: {
    latentChannels: 80,
    decoderChannels: 96,
    downsamplingRatios: [10, 8, 6, 4],
    channelMultiples: [1, 1, 1, 1],
  },
  dit: {
    ...{ width: 256, innerWidth: 768, layers: 6, heads: 8, keyValueHeads: 4, headWidth: 32 },
    // Periods of 6 to 300 patches: beats and bars of any tempo fall between rotations that are close to each other.
    ropeTheta: 50,
    slidingWindow: 128,
    patchFrames: 2,
  },
  encoders: { lyricLayers: 1, timbreLayers: 1, timbreFrames: 250, tokenizerLayers: 1 },
  quantiserLevels: [8, 8, 8, 8],
  textEncoder: {
    width: 192,
    innerWidth: 512,
    layers: 2,
    heads: 4,
    keyValueHeads: 2,
    headWidth: 48,
    ropeTheta: 10000,
  },
  languageModel: {
    width: 192,
    innerWidth: 512,
    layers: 5,
    heads: 4,
    keyValueHeads: 2,
    headWidth: 48,
    ropeTheta: 10000,
  },
};

/** As small as the architecture allows: shows that the recipe works, and nothing else. */
const smoke: ModelSize = {
  vae: {
    latentChannels: 4,
    decoderChannels: 4,
    downsamplingRatios: [8, 4, 6, 10],
    channelMultiples: [1, 2, 2, 2],
  },
  dit: {
    ...{ width: 32, innerWidth: 48, layers: 2, heads: 2, keyValueHeads: 1, headWidth: 16, ropeTheta: 50 },
    slidingWindow: 16,
    patchFrames: 2,
  },
  encoders: { lyricLayers: 1, timbreLayers: 1, timbreFrames: 25, tokenizerLayers: 1 },
  quantiserLevels: [4, 4, 4],
  textEncoder: {
    width: 16,
    innerWidth: 24,
    layers: 1,
    heads: 2,
    keyValueHeads: 1,
    headWidth: 8,
    ropeTheta: 10000,
  },
  languageModel: {
    width: 16,
    innerWidth: 24,
    layers: 1,
    heads: 2,
    keyValueHeads: 1,
    headWidth: 8,
    ropeTheta: 10000,
  },
};

export const modelSizes = { nano, smoke };
export type ModelSizeName = keyof typeof modelSizes;

export function audioCodeCount({ quantiserLevels }: ModelSize): number {
  return quantiserLevels.reduce((product, levels) => product * levels, 1);
}
