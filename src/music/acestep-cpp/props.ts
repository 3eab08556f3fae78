/** What the server offers, for the menus of acestep.cpp's page. */
import { createRequire } from "node:module";
import type { Config } from "../../config.js";
import type { ModelCatalog } from "../../engine/types.js";
import { DEFAULTS } from "./ace-request.js";
import { namedAdapters } from "./adapters.js";
import { languageModels, synthModels } from "./names.js";
import { MAX_SONGS, PRESETS } from "./synth.js";

const { version } = createRequire(import.meta.url)("../../../package.json") as { version: string };

export async function propsOf(config: Config, catalog: ModelCatalog) {
  const lm = languageModels(catalog);
  const dit = synthModels(catalog).map(({ shownName }) => shownName);
  return {
    version,
    models: {
      lm,
      // Each model has its own text encoder and VAE, which requests cannot select.
      embedding: ["text_encoder"],
      dit,
      vae: ["vae"],
    },
    adapters: (await namedAdapters(config)).map(({ name }) => name),
    cli: { max_batch: MAX_SONGS },
    default: DEFAULTS,
    presets: PRESETS,
    // Read by clients of the interface before jobs.
    status: { lm: readiness(lm), synth: readiness(dit) },
  };
}

function readiness(models: readonly string[]): "ok" | "disabled" {
  return models.length > 0 ? "ok" : "disabled";
}
