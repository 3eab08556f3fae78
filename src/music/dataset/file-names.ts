/** Finds files by names from other systems, which differ in letter case and in the Unicode form of accents. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Equal for names that a file system of Windows or macOS does not tell apart. */
export function looseName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Actual names in a folder, by themselves and by their loose form. */
type Names = ReadonlyMap<string, string>;

/** Lists each folder once. */
export class FolderLists {
  readonly #folders = new Map<string, Promise<Names>>();

  /** Path of the file below `folder` that the parts name; null if there is none. */
  async find(folder: string, parts: readonly string[]): Promise<string | null> {
    let path = folder;
    for (const part of parts) {
      const names = await this.#list(path);
      const name = names.get(part) ?? names.get(looseName(part));
      if (name === undefined) return null;
      path = join(path, name);
    }
    return path;
  }

  #list(folder: string): Promise<Names> {
    const known = this.#folders.get(folder);
    if (known !== undefined) return known;
    const listed = list(folder);
    this.#folders.set(folder, listed);
    return listed;
  }
}

/** Names in a folder; none if it cannot be read. */
async function list(folder: string): Promise<Names> {
  const names = await readdir(folder).catch((): string[] => []);
  return new Map([
    ...names.map((name) => [looseName(name), name] as const),
    ...names.map((name) => [name, name] as const),
  ]);
}
