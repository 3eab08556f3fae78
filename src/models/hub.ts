/** Lists and reads repositories of Hugging Face with its client library; errors become PullError. */
import { downloadFile, HubApiError, type ListFileEntry, listFiles } from "@huggingface/hub";
import { withTimeLimit } from "../system/time-limit.js";
import { PullError } from "./errors.js";
import { fetchFromHub, limitSize } from "./hub-fetch.js";
import { availableModelsText } from "./published.js";

/** `git-sha1` is the SHA-1 of a git blob header followed by the file. */
interface Checksum {
  algorithm: "sha256" | "git-sha1";
  hex: string;
}

export interface HubFile {
  repository: string;
  /** Path of the file in the repository, with slashes. */
  path: string;
  sizeBytes: number;
  checksum: Checksum;
}

export interface HubOptions {
  url: string;
  /** Access token; null for public repositories only. */
  token: string | null;
  signal: AbortSignal;
}

/** Time limit of one page of a file list. */
const PAGE_SECONDS = 60;
/** Maximum size of one page of a file list. */
const MAX_PAGE_BYTES = 32 * 2 ** 20;
const MAX_FILES = 10_000;

export class Hub {
  readonly signal: AbortSignal;
  readonly #url: string;
  readonly #access: { hubUrl: string; accessToken?: string };

  /** @throws PullError UNAUTHORIZED for a malformed token */
  constructor({ url, token, signal }: HubOptions) {
    if (token !== null && !token.startsWith("hf_")) {
      throw new PullError("UNAUTHORIZED", "HF_TOKEN is not a Hugging Face token: those begin with hf_.");
    }
    this.signal = signal;
    this.#url = url.replace(/\/+$/, "");
    this.#access = {
      hubUrl: this.#url,
      ...(token === null ? {} : { accessToken: token }),
    };
  }

  /** All files of a repository or a folder in it. @throws PullError */
  async list(repository: string, folder: string): Promise<HubFile[]> {
    const error = () =>
      new PullError(
        "UNREACHABLE",
        `${this.#url} did not answer within ${PAGE_SECONDS} seconds. Check the network; HF_ENDPOINT sets a mirror.`,
      );
    const limit = { ms: PAGE_SECONDS * 1000, signal: this.signal, error };
    const list = (signal: AbortSignal, restart: () => void) =>
      this.#list(repository, folder, signal, restart);
    return withTimeLimit(limit, list).catch((failure: unknown) => {
      throw this.#failure(failure, folder === "" ? repository : `${repository}/${folder}`);
    });
  }

  async #list(
    repository: string,
    folder: string,
    signal: AbortSignal,
    onPage: () => void,
  ): Promise<HubFile[]> {
    const files: HubFile[] = [];
    const ask: typeof fetch = (input, init) => {
      onPage();
      return this.#fetch(input, init, signal);
    };
    const access = { ...this.#access, fetch: limitSize(ask, MAX_PAGE_BYTES) };
    const repo = { type: "model", name: repository } as const;
    for await (const entry of listFiles({ ...access, repo, path: folder, recursive: true })) {
      if (entry.type === "file") files.push(hubFile(repository, entry));
      if (files.length > MAX_FILES) {
        throw new PullError("HUB", `${repository} lists more than ${MAX_FILES} files, too many for a model`);
      }
    }
    return files;
  }

  #fetch(
    input: Parameters<typeof fetch>[0],
    init: RequestInit | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    return fetchFromHub(String(input), init, { hub: new URL(this.#url), signal });
  }

  /** @throws PullError, or the signal's reason */
  async *read(file: HubFile, fromByte: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const repo = { type: "model", name: file.repository } as const;
    // `xet: false` avoids the hub's chunk store, because HF_ENDPOINT does not replace the hosts of that store.
    // The library's stream hides the error of a failed request, so `ask` keeps that error.
    let refusal: unknown;
    const ask: typeof fetch = (input, init) =>
      this.#fetch(input, init, signal).catch((error: unknown) => {
        refusal = error;
        throw error;
      });
    const access = { ...this.#access, fetch: limitSize(ask, file.sizeBytes) };
    const blob = await downloadFile({ ...access, repo, path: file.path, xet: false }).catch((error) => {
      signal.throwIfAborted();
      throw this.#failure(error, `${file.repository}/${file.path}`);
    });
    if (blob === null) throw notFound(`${file.repository}/${file.path}`);
    try {
      yield* blob.slice(fromByte, file.sizeBytes).stream();
    } catch (error) {
      signal.throwIfAborted();
      for (const known of [error, refusal]) if (known instanceof PullError) throw known;
      throw new PullError(
        "CONNECTION_LOST",
        `The connection was lost during the download of ${file.path} of ${file.repository} (${reasonOf(error)}). ` +
          "Pull the model again to resume.",
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
        `${this.#url} cannot be reached (${reasonOf(error)}). Check the network; HF_ENDPOINT sets a mirror.`,
        { cause: error },
      );
    }
    return new PullError(
      "HUB",
      `${this.#url} does not respond like Hugging Face (${reasonOf(error)}). Check HF_ENDPOINT.`,
      { cause: error },
    );
  }

  #failureOfStatus(error: HubApiError, what: string): PullError {
    const { statusCode } = error;
    if (statusCode === 404) return notFound(what, error);
    if (statusCode === 401 || statusCode === 403) {
      return new PullError(
        "UNAUTHORIZED",
        `${this.#url} refuses ${what} (status ${statusCode}): the repository does not exist, or it is private or gated. ` +
          "For those set HF_TOKEN to a token with read access; for a gated one also accept its terms on its page.",
        { cause: error },
      );
    }
    return new PullError(
      "HUB",
      `${this.#url} answers ${what} with status ${statusCode}. Try again later; the download resumes.`,
      { cause: error },
    );
  }
}

function notFound(what: string, cause?: HubApiError): PullError {
  return new PullError("NOT_FOUND", `Hugging Face has no ${what}. ${availableModelsText()}`, { cause });
}

function hubFile(repository: string, { path, size, oid, lfs }: ListFileEntry): HubFile {
  if (path.split(/[\\/]/).some((name) => name === "" || name === "..")) {
    throw new PullError("HUB", `${repository} lists a file outside the repository: ${path}`);
  }
  const hex = lfs?.oid ?? oid;
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new PullError("HUB", `${repository} lists ${path} with a size of ${size} bytes`);
  }
  if (hex === undefined)
    throw new PullError("HUB", `Hugging Face lists no checksum for ${repository}/${path}.`);
  const checksum: Checksum = { algorithm: lfs === undefined ? "git-sha1" : "sha256", hex };
  return { repository, path, sizeBytes: size, checksum };
}

/**
 * Why a request failed. An error of `fetch` has the reason as its cause. The library's streams throw strings.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? error.message);
}
