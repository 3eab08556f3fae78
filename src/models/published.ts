/** Public models and their repositories. */
import { PullError } from "./errors.js";
import { OWNER_SEPARATOR } from "./folder-names.js";

const PUBLISHER = "ACE-Step";
const MAIN_REPOSITORY = `${PUBLISHER}/Ace-Step1.5`;
const IN_MAIN_REPOSITORY = ["acestep-v15-turbo", "acestep-5Hz-lm-1.7B"];
const IN_OWN_REPOSITORY = [
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

/** Names for `carillon models pull`. */
export const PUBLISHED_MODELS = [...IN_MAIN_REPOSITORY, ...IN_OWN_REPOSITORY].sort();

/** Recommended model for songs with vocals, and its download size including the shared parts. */
export const SINGING_MODEL = { model: "acestep-v15-turbo", bytes: 6_400_000_000 };

/**
 * Folder for a repository whose owner is not PUBLISHER; null for a repository of PUBLISHER. The folder's name
 * contains the owner, so it differs from the names of published models.
 */
export function foreignFolder(repository: string): string | null {
  const [owner, name] = repository.split("/");
  return owner === PUBLISHER ? null : `${owner}${OWNER_SEPARATOR}${name}`;
}

/** Folder in a repository on Hugging Face, or a whole repository. */
export interface RepositoryFolder {
  repository: string;
  /** Folder in the repository; "" for the whole repository. */
  folder: string;
}

/** VAE and text encoder, which every DiT needs. They are in the main repository. */
export const SHARED_PARTS: readonly RepositoryFolder[] = ["vae", "Qwen3-Embedding-0.6B"].map((folder) => ({
  repository: MAIN_REPOSITORY,
  folder,
}));

/**
 * Owner and repository. A leading dot would allow a hidden folder, or one outside the checkpoint directory.
 */
const REPOSITORY_NAME = /^[\w-][\w.-]*\/[\w-][\w.-]*$/;

/** @throws PullError UNKNOWN_MODEL */
export function repositoryFolderOf(name: string): RepositoryFolder {
  if (IN_MAIN_REPOSITORY.includes(name)) return { repository: MAIN_REPOSITORY, folder: name };
  if (IN_OWN_REPOSITORY.includes(name)) return { repository: `${PUBLISHER}/${name}`, folder: "" };
  if (REPOSITORY_NAME.test(name)) return { repository: name, folder: "" };
  throw new PullError("UNKNOWN_MODEL", `There is no public model ${name}. ${availableModelsText()}`);
}

export function availableModelsText(): string {
  return `Available: ${PUBLISHED_MODELS.join(", ")}, and any other as owner/repository.`;
}
