/** Which public repository holds which model. */
import { PullError } from "./errors.js";

const publisher = "ACE-Step";
const mainRepository = `${publisher}/Ace-Step1.5`;
const inMainRepository = ["acestep-v15-turbo", "acestep-5Hz-lm-1.7B"];
const inOwnRepository = [
  "acestep-v15-base",
  "acestep-v15-sft",
  "acestep-v15-turbo-continuous",
  "acestep-v15-turbo-shift1",
  "acestep-v15-turbo-shift3",
  "acestep-v15-xl-base",
  "acestep-v15-xl-sft",
  "acestep-v15-xl-turbo",
  "acestep-5Hz-lm-0.6B",
  "acestep-5Hz-lm-4B",
];

/** What `carillon models pull` knows by name. */
export const publishedModels = [...inMainRepository, ...inOwnRepository].sort();

/** A repository of the hub, or a folder in one. */
export interface Source {
  repository: string;
  /** Empty for all of it. */
  folder: string;
}

/** What a DiT cannot render without; its own repository leaves it out. */
export const sharedParts: readonly Source[] = ["vae", "Qwen3-Embedding-0.6B"].map((folder) => ({
  repository: mainRepository,
  folder,
}));

/** Neither name begins with a dot, so the folder made for it lies in the checkpoint directory and is not hidden. */
const repositoryName = /^[\w-][\w.-]*\/[\w-][\w.-]*$/;

/**
 * @param name a public model, or `owner/repository`
 * @throws PullError UNKNOWN_MODEL
 */
export function sourceOf(name: string): Source {
  if (inMainRepository.includes(name)) return { repository: mainRepository, folder: name };
  if (inOwnRepository.includes(name)) return { repository: `${publisher}/${name}`, folder: "" };
  if (repositoryName.test(name)) return { repository: name, folder: "" };
  throw new PullError("UNKNOWN_MODEL", `There is no public model ${name}. ${knownNames()}`);
}

export function knownNames(): string {
  return `Known are ${publishedModels.join(", ")}, and any other as owner/repository.`;
}
