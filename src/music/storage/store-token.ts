/**
 * Token files that identify a shared storage. If a server finds the token of the fleet in its storage, it uses the
 * same storage as the fleet.
 */
import { randomUUID } from "node:crypto";
import { access, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectStore } from "./object-store.js";

const FOLDER = "fleet";

export interface StoreTokens {
  /** @throws StoreError or a file system error if the storage is unavailable, like `getOrCreate` */
  has(token: string): Promise<boolean>;
  /** Returns the token in the storage, or creates one if there is none. */
  getOrCreate(): Promise<string>;
}

export function directoryTokens(directory: string): StoreTokens {
  const folder = join(directory, FOLDER);
  return {
    has: (token) =>
      access(join(folder, token)).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === "ENOENT") return false;
          throw error;
        },
      ),
    getOrCreate: async () => {
      await mkdir(folder).catch(unlessItExists);
      const [known] = (await readdir(folder)).sort();
      if (known !== undefined) return known;
      const token = randomUUID();
      await writeFile(join(folder, token), "");
      return token;
    },
  };
}

export function objectTokens(store: ObjectStore): StoreTokens {
  const prefix = `${FOLDER}/`;
  return {
    has: async (token) => (await store.head(prefix + token)) !== null,
    getOrCreate: async () => {
      for await (const { name } of store.list(prefix)) return name.slice(prefix.length);
      const token = randomUUID();
      await store.putText(prefix + token, "");
      return token;
    },
  };
}

function unlessItExists(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
