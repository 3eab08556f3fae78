/** Engine options and a training request for tests of the built-in model. */
import type { EngineOptions, TrainingRequest } from "../../src/engine/types.js";

/** Device on which tests run models: the CPU, or a simulated CUDA device (native/test/fake_cuda). */
export const testDevice = process.env.CARILLON_TEST_DEVICE ?? "cpu";

export const engineOptions: EngineOptions = {
  checkpointsDirectory: "absent",
  slotModels: ["carillon-nano", null, null],
  languageModel: "carillon-nano/lm",
  devices: [testDevice],
  languageModelDevice: testDevice,
  dtype: "auto",
  quantization: "none",
  flashAttention: true,
  offload: false,
  offloadModel: false,
  offloadLanguageModel: false,
  batchMax: null,
  deterministic: false,
  sharesPlanning: true,
  idleSeconds: 0,
};

export function trainingRequest(samples: string[], outputDirectory: string): TrainingRequest {
  return {
    adapter: { kind: "lora", rank: 4, alpha: 8, dropout: 0 },
    dataSetName: "set",
    samples,
    outputDirectory,
    learningRate: 0.01,
    epochs: 30,
    batchSize: 1,
    gradientAccumulation: 1,
    saveEveryEpochs: 1_000_000,
    shift: 3,
    seed: 42,
    gradientCheckpointing: false,
    timestepSampling: "auto",
    trimCondition: false,
  };
}
