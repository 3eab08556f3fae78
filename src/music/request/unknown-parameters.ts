/** Fields of POST /release_task that are no parameters, also those of single songs. */
import { type Fields, namesOf } from "../../parameters.js";
import { UPLOAD_FIELDS } from "../audio/uploads.js";
import { NESTED_OBJECT_NAMES } from "./fields.js";
import { generationSchema, ownParts } from "./schema.js";
import { unknownFieldReporter } from "./unknown-fields.js";

/** Names of our parameters in other programs, such as ACE-Step 1, acestep.cpp and ComfyUI. */
const NAMES_OF_OTHERS: Readonly<Record<string, string>> = {
  loras: "adapter adapter_scale lora lora_path lora_scale lora_name_or_path lora_weight",
  guidance_scale: "cfg cfg_scale audio_guidance_scale",
  cfg_interval_start: "guidance_interval",
  lm_negative_prompt: "negative_prompt",
  timesteps: "custom_timesteps sigmas",
  infer_method: "sampler sampler_mode sampler_name scheduler_type solver",
  batch_size: "lm_batch_size synth_batch_size num_songs num_samples",
  seed: "manual_seeds",
  audio_duration: "length seconds",
  bpm: "tempo",
  prompt: "style tags genre",
  instrumental: "make_instrumental",
  audio_format: "output_format response_format",
  track_name: "track stem",
  repainting_start: "repaint_start",
  repainting_end: "repaint_end",
  src_audio_path: "audio_path input_audio_path source_audio",
  reference_audio_path: "ref_audio_input",
  lm_top_k: "top_k",
  lm_top_p: "top_p",
};

export const unknownFieldWarnings: (fields: Fields) => string[] = unknownFieldReporter(
  Object.values(generationSchema.shape).map(namesOf),
  {
    others: [
      "ai_token",
      ...Object.values(NESTED_OBJECT_NAMES).flat(),
      ...Object.values(UPLOAD_FIELDS).flat(),
    ],
    meanings: NAMES_OF_OTHERS,
  },
);

/** For an element of `songs`. */
export const unknownSongFieldWarnings: (fields: Fields) => string[] = unknownFieldReporter(
  Object.values(ownParts.shape).map(namesOf),
);
