/**
 * Local imitation of Hugging Face, with the same paths, redirects, headers and errors. Sends file lists in pages and
 * small files as git blobs. Large files (LFS) come from a storage host that supports byte ranges.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Contents of files, by their path in the repository. */
export type Repository = Record<string, Buffer>;

export interface DownloadRequest {
  path: string;
  /** First byte of the requested range; null without a Range header. */
  fromByte: number | null;
}

const ENTRIES_A_PAGE = 3;
const isLarge = (path: string) => /\.(safetensors|pt)$/.test(path);
const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");
const blobSha1 = (content: Buffer) =>
  createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");

export class FakeHub {
  /** Recorded file downloads, without the one-byte requests that only ask for the size. */
  readonly downloads: DownloadRequest[] = [];
  readonly repositories: Record<string, Repository> = {};
  /** Names of the repositories that require `token`. */
  readonly private = new Set<string>();
  readonly token = "hf_reader";
  /** Files whose download stops after `afterBytes`. The connection closes, or with `hangs` waits for `resume`. */
  readonly cuts: Record<string, { afterBytes: number; hangs?: boolean }> = {};
  /** Files that are sent with one wrong byte. */
  readonly corrupted = new Set<string>();
  /** Number of extra bytes after a file's content. Such a response has no Content-Length. */
  readonly surplus: Record<string, number> = {};
  /** If set, downloads are redirected to this URL instead of the storage host. */
  storageHost: string | null = null;
  /** If set, file lists give this URL as the link to the next page, instead of the real one. */
  nextPage: string | null = null;
  /** Status of every response, to simulate a broken hub; null: normal responses. */
  brokenStatus: number | null = null;
  /** Whether responses advertise a chunk store for large files. */
  hasChunkStore = true;
  private hanging = () => {};

  private constructor(
    private readonly hub: Server,
    private readonly storage: Server,
  ) {
    hub.on("request", (request, response) => this.answer(request, response));
    storage.on("request", (request, response) => this.answerStored(request, response));
  }

  /** Starts the server, which stops at the end of the test file. */
  static async start(): Promise<FakeHub> {
    const servers = [createServer(), createServer()] as const;
    for (const server of servers) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    after(() => {
      for (const server of servers) server.close().closeAllConnections();
    });
    return new FakeHub(...servers);
  }

  get url(): string {
    return urlOf(this.hub);
  }

  /** Sends the rest of a file whose download hangs. */
  resume(): void {
    this.hanging();
  }

  /** Removes all repositories, faults and recorded requests. */
  reset(): void {
    this.downloads.length = 0;
    this.private.clear();
    this.corrupted.clear();
    this.brokenStatus = null;
    this.hasChunkStore = true;
    this.storageHost = null;
    this.nextPage = null;
    for (const record of [this.repositories, this.cuts, this.surplus]) {
      for (const key of Object.keys(record)) delete record[key];
    }
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "", this.url);
    const path = decodeURIComponent(url.pathname);
    const tree = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/main(?:\/(.*))?$/.exec(path);
    const file = /^\/(?:api\/resolve-cache\/models\/)?([^/]+\/[^/]+)\/(?:resolve\/)?main\/(.+)$/.exec(path);
    const [, name = "", rest = ""] = tree ?? file ?? [];
    const repository = this.repositories[name];
    const isReader = request.headers.authorization === `Bearer ${this.token}`;
    if (this.brokenStatus !== null) {
      refuse(response, this.brokenStatus, "", "Service unavailable");
    } else if (repository === undefined || (this.private.has(name) && !isReader)) {
      // Anonymous clients get the same answer for missing and private repositories.
      if (isReader) refuse(response, 404, "RepoNotFound", "Repository not found");
      else refuse(response, 401, "RepoNotFound", "Invalid username or password.");
    } else if (tree !== null) {
      this.answerTree(repository, rest, url, response);
    } else if (repository[rest] === undefined) {
      refuse(response, 404, "EntryNotFound", "Entry not found");
    } else if (isLarge(rest)) {
      this.answerLarge(repository[rest], `${name}/${rest}`, request, response);
    } else if (path.startsWith("/api/resolve-cache/")) {
      this.send(repository[rest], rest, blobSha1(repository[rest]), request, response);
    } else {
      response.writeHead(307, { Location: `/api/resolve-cache/models/${name}/main/${rest}` }).end();
    }
  }

  private answerTree(repository: Repository, folder: string, url: URL, response: ServerResponse): void {
    const prefix = folder === "" ? "" : `${folder}/`;
    const paths = Object.keys(repository).filter((path) => path.startsWith(prefix));
    if (paths.length === 0) {
      refuse(response, 404, "EntryNotFound", `${folder} does not exist`);
      return;
    }
    const entries = [...foldersOf(paths).filter((path) => path.startsWith(prefix)), ...paths].sort();
    const start = Number(url.searchParams.get("cursor") ?? 0);
    const end = start + ENTRIES_A_PAGE;
    const headers: Record<string, string> = { "Content-Type": "application/json; charset=utf-8" };
    if (end < entries.length) {
      url.searchParams.set("cursor", String(end));
      headers.Link = `<${this.nextPage ?? url}>; rel="next"`;
    }
    const page = entries.slice(start, end).map((path) => entryOf(path, repository[path]));
    response.writeHead(200, headers).end(JSON.stringify(page));
  }

  private answerLarge(
    content: Buffer,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const linked = {
      "X-Linked-Size": content.length,
      "X-Linked-ETag": `"${sha256(content)}"`,
    };
    if (this.hasChunkStore && request.headers.accept?.includes("application/vnd.xet-fileinfo+json")) {
      const store = `${this.url}/chunk-store`;
      const links = `<${store}/token>; rel="xet-auth", <${store}/reconstruction>; rel="xet-reconstruction-info"`;
      const type = "application/vnd.xet-fileinfo+json";
      const headers = { ...linked, "Content-Type": type, "X-Xet-Hash": sha256(content), Link: links };
      response.writeHead(200, headers).end("{}");
      return;
    }
    response
      .writeHead(302, { ...linked, Location: `${this.storageHost ?? urlOf(this.storage)}/${path}` })
      .end();
  }

  /** Answers as the storage host. Rejects requests with a token, because clients must not send it there. */
  private answerStored(request: IncomingMessage, response: ServerResponse): void {
    const [, name = "", path = ""] = /^\/([^/]+\/[^/]+)\/(.+)$/.exec(request.url ?? "") ?? [];
    const content = this.repositories[name]?.[path];
    if (content === undefined || request.headers.authorization !== undefined) {
      response.writeHead(400).end();
      return;
    }
    this.send(content, path, sha256(content), request, response);
  }

  private send(
    content: Buffer,
    path: string,
    etag: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const start = Number(first ?? 0);
    const end = Math.min(Number(last ?? content.length - 1) + 1, content.length);
    const isProbe = first === "0" && last === "0";
    if (!isProbe) this.downloads.push({ path, fromByte: first === undefined ? null : start });
    const sent = Buffer.from(content.subarray(start, end));
    if (this.corrupted.has(path)) sent[sent.length - 1] = (sent.at(-1) ?? 0) ^ 1;
    const isTold = this.surplus[path] === undefined;
    const headers = {
      ETag: `"${etag}"`,
      "Accept-Ranges": "bytes",
      ...(isTold && { "Content-Length": sent.length }),
    };
    if (first === undefined) response.writeHead(200, headers);
    else
      response.writeHead(206, { ...headers, "Content-Range": `bytes ${start}-${end - 1}/${content.length}` });
    const surplus = this.surplus[path];
    if (!isProbe && surplus !== undefined) {
      response.end(Buffer.concat([sent, Buffer.alloc(surplus)]));
      return;
    }
    const cut = isProbe ? undefined : this.cuts[path];
    if (cut === undefined) {
      response.end(sent);
      return;
    }
    response.write(sent.subarray(0, cut.afterBytes), () => {
      if (cut.hangs) this.hanging = () => response.end(sent.subarray(cut.afterBytes));
      else response.destroy();
    });
  }
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function refuse(response: ServerResponse, status: number, code: string, error: string): void {
  const headers = { "Content-Type": "application/json; charset=utf-8", "X-Error-Code": code };
  response.writeHead(status, headers).end(JSON.stringify({ error }));
}

function foldersOf(paths: string[]): string[] {
  const folders = paths.flatMap((path) => {
    const names = path.split("/").slice(0, -1);
    return names.map((_, depth) => names.slice(0, depth + 1).join("/"));
  });
  return [...new Set(folders)];
}

function entryOf(path: string, content: Buffer | undefined): object {
  if (content === undefined) return { type: "directory", oid: "0".repeat(40), size: 0, path };
  const entry = { type: "file", oid: blobSha1(content), size: content.length, path };
  if (!isLarge(path)) return entry;
  const oid = sha256(content);
  return { ...entry, lfs: { oid, size: content.length, pointerSize: 134 }, xetHash: oid };
}
