/** Names of cache folders by the content of what made them, so that nothing stale is used. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folderOf = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const composer = ["genres", "compose", "render", "words"].map(folderOf);
const packers = new Set(["pack.py", "latent_space.py", "semitones.py", "spectra.py"]);

/** Hash of the code that determines held-out pieces. */
export function composerVersion(): string {
  return versionOf(composer, (name) => name.endsWith(".ts"));
}

/** Hash of all that determines a training data set: code, `options`, and the checkpoint's tokenizer and latent space. */
export function dataVersion(checkpoint: string, options: object): string {
  const parts = [
    composerVersion(),
    versionOf([folderOf("dataset")], (name) => name.endsWith(".ts")),
    versionOf([folderOf("training")], (name) => packers.has(name)),
    weightsVersion(join(checkpoint, "text_encoder"), join(checkpoint, "vae")),
    JSON.stringify(options),
  ];
  return createHash("sha256").update(parts.join()).digest("hex").slice(0, 12);
}

/** Hash of the parts of a checkpoint, by folder. */
export function weightsVersion(...directories: string[]): string {
  return versionOf(directories, (name) => name.endsWith(".safetensors") || name.endsWith(".json"));
}

/** Hash of the files directly in these folders. */
function versionOf(directories: readonly string[], counts: (name: string) => boolean): string {
  const hash = createHash("sha256");
  for (const directory of directories) {
    for (const name of readdirSync(directory).filter(counts).sort()) {
      for (const part of [name, readFileSync(join(directory, name))]) hash.update(part).update("\0");
    }
  }
  return hash.digest("hex").slice(0, 12);
}
