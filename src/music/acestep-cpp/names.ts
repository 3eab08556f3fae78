/** Names of models and adapters, as clients of acestep.cpp write them: file names. */
import type { ModelCatalog } from "../../engine/types.js";
import { listModels } from "../models/models.js";

/** Clients tell turbo models by this word in their names. */
const TURBO = "turbo";
const EXTENSION = /\.gguf$/i;
/** Type of the weights at the end of a name, such as -Q8_0 or -BF16. */
const WEIGHT_TYPE = /-(I?Q\d\w*|BF16|F16|F32|MXFP4\w*)$/i;

/** Models that a request can select, default first. A turbo model whose name does not say so gets the word. */
export function synthModels(catalog: ModelCatalog): { name: string; shownName: string }[] {
  const isTurbo = (name: string) => catalog.models().find((model) => model.name === name)?.isTurbo ?? false;
  return listModels(catalog).models.map(({ name }) => {
    return { name, shownName: isTurbo(name) && !name.includes(TURBO) ? `${name}-${TURBO}` : name };
  });
}

/** Language models, the default first. */
export function languageModels(catalog: ModelCatalog): string[] {
  const names = catalog.languageModels().map(({ name }) => name);
  const loaded = catalog.loadedLanguageModel();
  return loaded === null || !names.includes(loaded)
    ? names
    : [loaded, ...names.filter((name) => name !== loaded)];
}

/** Our name of a language model; undefined: the default. */
export function ownLanguageModel(requested: string, catalog: ModelCatalog): string | undefined {
  if (requested === "") return undefined;
  return ownName(
    requested,
    languageModels(catalog).map((name) => ({ name, shownName: name })),
  );
}

/** Our name of a model that a client names with or without extension and type of weights; unknown names stay. */
export function ownName(requested: string, models: readonly { name: string; shownName: string }[]): string {
  const plain = requested.replace(EXTENSION, "");
  const spellings = [requested, plain, plain.replace(WEIGHT_TYPE, "")];
  const found = spellings.flatMap((spelling) =>
    models.filter(({ name, shownName }) => name === spelling || shownName === spelling),
  );
  return found[0]?.name ?? plain;
}
