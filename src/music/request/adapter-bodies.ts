/**
 * The bodies of the endpoints of adapters and of their training, how a run is made aside (../../engine/training-parameters.ts).
 * Nothing is clamped or replaced: what cannot be done as asked is refused.
 */
import { lokrParameters, loraParameters } from "../../engine/training-parameters.js";
import {
  finiteNumber,
  flag,
  oneOf,
  parameter,
  requiredText,
  textOrNull,
  trimmed,
  within,
} from "../../parameters.js";
import { strictParser } from "./fields.js";

const adapterName = parameter(
  ["adapter_name", "name"],
  textOrNull.nullable().default(null),
  "Name of the adapter; open: the last part of the path where one is loaded, else the active one.",
);

export const parseAdapterLoad = strictParser({
  path: parameter(
    ["lora_path", "path"],
    requiredText,
    "A PEFT folder, one above it, or a .safetensors file.",
  ),
  name: adapterName,
  doraEpsilon: parameter(
    "dora_epsilon",
    oneOf(["float32", "bfloat16"]).default("float32"),
    "What LyCORIS' DoRA adds: float32 as in training, bfloat16 to sound as in programs that cast adapters first.",
  ),
});

export const parseAdapterToggle = strictParser({
  enabled: parameter(["use_lora", "enabled"], flag, "Whether the active adapter acts."),
});

export const parseAdapterScale = strictParser({
  scale: parameter(
    ["scale", "lora_scale"],
    within(finiteNumber, 0, 1),
    "How strongly it acts; 0: the base model.",
  ),
  name: adapterName,
});

export type AdapterLoad = ReturnType<typeof parseAdapterLoad>;
export type AdapterScale = ReturnType<typeof parseAdapterScale>;

/** The paths of a run. */
const pathParameters = {
  tensorDir: parameter("tensor_dir", requiredText, "Directory of sample files."),
  resumeFrom: parameter(
    "resume_from",
    textOrNull.nullable().default(null),
    "A checkpoint folder of an earlier run, or the folder of an adapter, to go on from.",
  ),
};

/** @throws RequestError naming the field at fault, as all of these */
export const parseLoraTraining = strictParser({
  ...pathParameters,
  ...loraParameters.run,
  ...loraParameters.design,
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    trimmed.default("./lora_output"),
    "Directory of checkpoints and of the adapter.",
  ),
  useFp8: parameter(
    "use_fp8",
    flag.default(false),
    "Accepted, without effect: frozen weights stay in the precision of the model.",
  ),
});

export const parseLokrTraining = strictParser({
  ...pathParameters,
  ...lokrParameters.run,
  ...lokrParameters.design,
  outputDir: parameter(
    ["output_dir", "lora_output_dir"],
    trimmed.default("./lokr_output"),
    "Directory of checkpoints and of the adapter.",
  ),
});

export type LoraTraining = ReturnType<typeof parseLoraTraining>;
export type LokrTraining = ReturnType<typeof parseLokrTraining>;

/** What POST /v1/training/export copies, and where to. */
export const parseAdapterExport = strictParser({
  exportPath: parameter(
    "export_path",
    requiredText,
    "Where the adapter goes; what is no export is not overwritten.",
  ),
  outputDir: parameter(
    ["lora_output_dir", "output_dir"],
    requiredText,
    "Directory of the run that trained the adapter.",
  ),
  foldAlpha: parameter(
    "fold_alpha",
    flag.default(false),
    "Multiplies the scale into the weights, for programs that read none.",
  ),
  comfySingleFile: parameter(
    "comfy_single_file",
    flag.default(false),
    "Makes one file, comfy_lora.safetensors, for ComfyUI and acestep.cpp.",
  ),
});

export type AdapterExport = ReturnType<typeof parseAdapterExport>;

/** The directory that POST /v1/training/load_tensor_info asks about. */
export const parseTensorInfo = strictParser({ tensorDir: pathParameters.tensorDir });
