/**
 * Bodies of the adapter and training endpoints. Invalid values are refused, never clamped. The hyperparameters are
 * defined in ../../engine/training-parameters.ts.
 */
import { ADAPTER_SCALES } from "../../engine/adapters.js";
import { lokrParameters, loraParameters } from "../../engine/training-parameters.js";
import { meaningOfIgnored } from "../../ignored.js";
import {
  finiteNumber,
  flag,
  offByDefault,
  oneOf,
  optionalText,
  parameter,
  requiredText,
  trimmed,
  within,
} from "../../parameters.js";
import { strictParser } from "./fields.js";

const adapterName = (whenUnset: string) =>
  parameter(["adapter_name", "name"], optionalText, `Name of the adapter; unset: ${whenUnset}.`);

export const adapterScale = within(finiteNumber, ADAPTER_SCALES.min, ADAPTER_SCALES.max);

/** Data type of the epsilon that LyCORIS' DoRA adds to norms. */
export const doraEpsilon = oneOf(["float32", "bfloat16"]);

export const parseAdapterLoad = strictParser({
  path: parameter(
    ["lora_path", "path"],
    requiredText,
    "A PEFT folder, its parent folder, or a .safetensors or .bin file.",
  ),
  name: adapterName("the last part of the path"),
  doraEpsilon: parameter(
    "dora_epsilon",
    doraEpsilon.default("float32"),
    "Epsilon of LyCORIS' DoRA: float32 as in training, or bfloat16 to match programs that cast adapters first.",
  ),
});

export const parseAdapterUnload = strictParser({ name: adapterName("all of them") });

export const parseAdapterToggle = strictParser({
  enabled: parameter(["use_lora", "enabled"], flag, "Enable or disable the adapter."),
  name: adapterName("all of them"),
});

export const parseAdapterScale = strictParser({
  scale: parameter(
    ["scale", "lora_scale"],
    adapterScale,
    "Strength of the adapter: 1 as trained, 0 no effect, negative inverts it.",
  ),
  name: adapterName("the one loaded last"),
});

export type AdapterLoad = ReturnType<typeof parseAdapterLoad>;
export type AdapterToggle = ReturnType<typeof parseAdapterToggle>;
export type AdapterScale = ReturnType<typeof parseAdapterScale>;

const pathParameters = {
  tensorDir: parameter("tensor_dir", requiredText, "Directory of prepared samples."),
  resumeFrom: parameter(
    "resume_from",
    optionalText,
    "Checkpoint folder of an earlier run, or adapter folder, to resume from.",
  ),
};

/** Body of POST /v1/training/start. */
export const parseLoraTraining = strictParser({
  ...pathParameters,
  ...loraParameters.run,
  ...loraParameters.design,
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    trimmed.default("./lora_output"),
    "Directory for checkpoints and the adapter.",
  ),
  useFp8: parameter("use_fp8", offByDefault, meaningOfIgnored("use_fp8")),
});

/** Body of POST /v1/training/start_lokr. */
export const parseLokrTraining = strictParser({
  ...pathParameters,
  ...lokrParameters.run,
  ...lokrParameters.design,
  outputDir: parameter(
    ["output_dir", "lora_output_dir"],
    trimmed.default("./lokr_output"),
    "Directory for checkpoints and the adapter.",
  ),
});

export type LoraTraining = ReturnType<typeof parseLoraTraining>;
export type LokrTraining = ReturnType<typeof parseLokrTraining>;

/** Body of POST /v1/training/export. */
export const parseAdapterExport = strictParser({
  exportPath: parameter("export_path", requiredText, "Output path; only an earlier export is overwritten."),
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    requiredText,
    "Output directory of the training run.",
  ),
  foldAlpha: parameter(
    "fold_alpha",
    offByDefault,
    "Multiplies the scale into the weights, for programs that do not read the scale.",
  ),
  comfySingleFile: parameter(
    "comfy_single_file",
    offByDefault,
    "Writes a single file, comfy_lora.safetensors, for ComfyUI and acestep.cpp.",
  ),
});

export type AdapterExport = ReturnType<typeof parseAdapterExport>;

/** Body of POST /v1/training/load_tensor_info. */
export const parseTensorInfo = strictParser({ tensorDir: pathParameters.tensorDir });
