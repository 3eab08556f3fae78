/** Lists and reads repositories of the model hub with its own library; failures come out as PullError. */
import { downloadFile, HubApiError, type ListFileEntry, listFiles } from "@huggingface/hub";
import { PullError } from "./errors.js";
import { knownNames } from "./published.js";

/** Git's sha1 of a blob hashes a header before the content. */
export interface Checksum {
  algorithm: "sha256" | "git-sha1";
  hex: string;
}

export interface HubFile {
  repository: string;
  /** In the repository, with slashes. */
  path: string;
  sizeBytes: number;
  checksum: Checksum;
}

export interface HubOptions {
  /** The address of the hub or a mirror. */
  url: string;
  /** Null for what is public. */
  token: string | null;
  signal: AbortSignal;
}

export class Hub {
  readonly signal: AbortSignal;
  readonly #url: string;
  readonly #access: { hubUrl: string; fetch: typeof fetch; accessToken?: string };

  /** @throws PullError UNAUTHORIZED for what cannot be a token */
  constructor({ url, token, signal }: HubOptions) {
    if (token !== null && !token.startsWith("hf_")) {
      throw new PullError("UNAUTHORIZED", "HF_TOKEN holds no token of the hub: these begin with hf_.");
    }
    this.signal = signal;
    this.#url = url.replace(/\/+$/, "");
    this.#access = {
      hubUrl: this.#url,
      fetch: (input, init) => fetch(input, { ...init, signal }),
      ...(token === null ? {} : { accessToken: token }),
    };
  }

  /**
   * All files of a repository, or of a folder in it.
   * @throws PullError
   */
  async list(repository: string, folder: string): Promise<HubFile[]> {
    const files: HubFile[] = [];
    try {
      const repo = { type: "model", name: repository } as const;
      for await (const entry of listFiles({ ...this.#access, repo, path: folder, recursive: true })) {
        if (entry.type === "file") files.push(hubFile(repository, entry));
      }
    } catch (error) {
      throw this.#failure(error, folder === "" ? repository : `${repository}/${folder}`);
    }
    return files;
  }

  /**
   * The bytes of a file from an offset on.
   * @throws PullError
   */
  async *read(file: HubFile, fromByte: number): AsyncGenerator<Uint8Array, void> {
    const repo = { type: "model", name: file.repository } as const;
    // Plain HTTP instead of the hub's chunk store, which asks hosts that no HF_ENDPOINT stands in for.
    const blob = await downloadFile({ ...this.#access, repo, path: file.path, xet: false }).catch((error) => {
      throw this.#failure(error, `${file.repository}/${file.path}`);
    });
    if (blob === null) throw notFound(`${file.repository}/${file.path}`);
    try {
      yield* blob.slice(fromByte, file.sizeBytes).stream();
    } catch (error) {
      this.signal.throwIfAborted();
      throw new PullError(
        "CONNECTION_LOST",
        `The connection was lost while ${file.path} of ${file.repository} was downloaded (${reasonOf(error)}). ` +
          "Pull the model again: it goes on from there.",
        { cause: error },
      );
    }
  }

  #failure(error: unknown, what: string): unknown {
    this.signal.throwIfAborted();
    if (error instanceof PullError) return error;
    if (error instanceof HubApiError) return this.#failureOfStatus(error, what);
    if (error instanceof TypeError && error.cause !== undefined) {
      return new PullError(
        "UNREACHABLE",
        `${this.#url} cannot be reached (${reasonOf(error)}). Check the network; HF_ENDPOINT names a mirror.`,
        { cause: error },
      );
    }
    return new PullError(
      "HUB",
      `${this.#url} does not answer as the hub does (${reasonOf(error)}). Check HF_ENDPOINT.`,
      { cause: error },
    );
  }

  #failureOfStatus(error: HubApiError, what: string): PullError {
    const { statusCode } = error;
    if (statusCode === 404) return notFound(what, error);
    if (statusCode === 401 || statusCode === 403) {
      return new PullError(
        "UNAUTHORIZED",
        `${this.#url} refuses ${what} (status ${statusCode}): there is no such repository, or it is private or gated. ` +
          "Then set HF_TOKEN to a token that may read it; a gated one also wants its terms accepted on its page.",
        { cause: error },
      );
    }
    return new PullError(
      "HUB",
      `${this.#url} answers ${what} with status ${statusCode}. Try again later: it goes on from there.`,
      { cause: error },
    );
  }
}

function notFound(what: string, cause?: HubApiError): PullError {
  return new PullError("NOT_FOUND", `The hub has no ${what}. ${knownNames()}`, { cause });
}

function hubFile(repository: string, { path, size, oid, lfs }: ListFileEntry): HubFile {
  if (path.split(/[\\/]/).some((name) => name === "" || name === "..")) {
    throw new PullError("HUB", `${repository} lists a file that lies outside of it: ${path}`);
  }
  const hex = lfs?.oid ?? oid;
  if (hex === undefined) throw new PullError("HUB", `The hub lists no checksum of ${repository}/${path}.`);
  const checksum: Checksum = { algorithm: lfs === undefined ? "git-sha1" : "sha256", hex };
  return { repository, path, sizeBytes: size, checksum };
}

/** Under "fetch failed" lies what tells more; a stream of the library fails with a bare text. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? error.message);
}
