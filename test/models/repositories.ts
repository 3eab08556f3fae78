/** The built-in model, in the layout of the public repositories. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Repository } from "./hub-server.js";

const nano = fileURLToPath(new URL("../../models/carillon-nano", import.meta.url));

function filesOf(folder: string, prefix: string): Repository {
  const names = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(names.map((name) => [`${prefix}${name}`, readFileSync(join(folder, name))]));
}

/** Repository with the default model, its parts, and a language model that no test loads. */
export function mainRepository(): Repository {
  return {
    "README.md": Buffer.from("# Music\n"),
    "config.json": Buffer.from("{}"),
    ...filesOf(nano, "acestep-v15-turbo/"),
    ...filesOf(join(nano, "vae"), "vae/"),
    ...filesOf(join(nano, "text_encoder"), "Qwen3-Embedding-0.6B/"),
    "acestep-5Hz-lm-1.7B/config.json": Buffer.from("{}"),
    "acestep-5Hz-lm-1.7B/model.safetensors": Buffer.from("weights"),
  };
}

export function languageModelRepository(): Repository {
  return filesOf(join(nano, "lm"), "");
}
